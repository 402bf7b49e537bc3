"""Dates: from the ways people write them to ISO 8601, character by character.

The month name of one form is the digit pair of another; the year stands first or last; and the
weekday of the last form must be ignored.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from string import Formatter

from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.data.text.task import Pair, Spelling, TextTask, check_tokens
from tfm_core.data.vocabulary import Vocabulary

# fmt: off
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August",
    "September", "October", "November", "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# fmt: on
FIRST_YEAR, LAST_YEAR = 1950, 2049
_FIRST_DAY = datetime.date(FIRST_YEAR, 1, 1).toordinal()
_END_DAY = datetime.date(LAST_YEAR + 1, 1, 1).toordinal()

FORMS = (
    "{name} {day}, {year}",
    "{day} {short} {year}",
    "{year}/{month}/{day}",
    "{day}{ending} of {name} {year}",
    "{year}년 {month}월 {day}일",
    "{weekday}, {day}{ending} of {name} {year}",
)
"""From March 5, 2019 to Tuesday, 5th of March 2019."""
_PATTERNS = {
    "year": r"(?P<year>\d{4})",
    "month": r"(?P<month>\d{1,2})",
    "name": rf"(?P<month>{'|'.join(MONTHS)})",
    "short": rf"(?P<month>{'|'.join(name[:3] for name in MONTHS)})",
    "day": r"(?P<day>\d{1,2})",
    "ending": "(?:st|nd|rd|th)",
    "weekday": f"(?:{'|'.join(WEEKDAYS)})",
}
_MEANINGS = {"year": "year", "month": "month", "name": "month", "short": "month", "day": "day"}


def written(form: str, date: datetime.date) -> list[tuple[str, str]]:
    """Return a date in a form: what each part means, "year", "month", "day" or "", and its text."""
    name = MONTHS[date.month - 1]
    # 1st, 2nd, 3rd, 4th, … 11th, … 21st
    ending = {1: "st", 2: "nd", 3: "rd"}.get(date.day % 10, "th")
    texts = {
        "year": str(date.year),
        "month": str(date.month),
        "name": name,
        "short": name[:3],
        "day": str(date.day),
        "ending": "th" if date.day in (11, 12, 13) else ending,
        "weekday": WEEKDAYS[date.weekday()],
    }
    return [
        (_MEANINGS.get(field, ""), texts[field]) if field else ("", literal)
        for field, literal in _parts(form)
    ]


@cache
def _parts(form: str) -> list[tuple[str, str]]:
    """Return the parts of a form: the name of a field, or "" and a literal text."""
    parts: list[tuple[str, str]] = []
    for literal, field, _format, _conversion in Formatter().parse(form):
        parts += [("", literal)] if literal else []
        parts += [(field, "")] if field else []
    return parts


def pattern(form: str) -> str:
    """Return the regular expression of a form, with the groups year, month and day."""
    return form.format(**_PATTERNS)


@dataclass(frozen=True)
class DatesTask(TextTask):
    """Dates of a hundred years in the first ``n_forms`` forms, to ``2019-03-05``."""

    spelling = Spelling(
        "dates",
        "plain",
        names=(*MONTHS, *WEEKDAYS, *dict.fromkeys(month[:3] for month in MONTHS)),
    )
    n_forms: int
    name: str = "dates"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """Every character of the forms that are mixed."""
        characters = {
            character
            for form in FORMS[: self.n_forms]
            for month in range(1, 13)
            for day in range(1, 8)  # every weekday and every ending
            for _, text in written(form, datetime.date(2019, month, day))
            for character in text
        }
        return Vocabulary(tuple(sorted(characters | set("0123456789"))))

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """Digits and the hyphen."""
        return Vocabulary(tuple("0123456789-"))

    def sample(self, rng: random.Random) -> Pair:
        """Draw a day and a form, each evenly."""
        day = datetime.date.fromordinal(rng.randrange(_FIRST_DAY, _END_DAY))
        return _pair(day, FORMS[rng.randrange(self.n_forms)])

    def every(self, limit: int) -> list[Pair] | None:
        """Return every day in every form, if they are at most ``limit``."""
        if (_END_DAY - _FIRST_DAY) * self.n_forms > limit:
            return None
        days = [datetime.date.fromordinal(n) for n in range(_FIRST_DAY, _END_DAY)]
        return [_pair(day, form) for day in days for form in FORMS[: self.n_forms]]

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into characters; the case of names, spare spaces and a final period don't matter."""
        text = " ".join(text.split()).removesuffix(".")
        usual = {name.lower(): name for name in self.spelling.names}
        text = re.sub(r"[A-Za-z]+", lambda word: usual.get(word[0].lower(), word[0].lower()), text)
        longest = TEXT_TASKS[self.name].max_src_len(self.n_forms)
        return check_tokens(text, self.src_vocabulary, longest=longest, kind="character")

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the ISO date; None where the source is no date in one of the forms."""
        found = (
            re.fullmatch(pattern(form), "".join(src), re.ASCII) for form in FORMS[: self.n_forms]
        )
        match = next(filter(None, found), None)
        if match is None:
            return None
        names, month = [name[:3] for name in MONTHS], match["month"]
        number = names.index(month[:3]) + 1 if month[:3] in names else int(month)
        try:
            return tuple(datetime.date(int(match["year"]), number, int(match["day"])).isoformat())
        except ValueError:  # the 30th of February
            return None


def _pair(date: datetime.date, form: str) -> Pair:
    src = ""
    positions: dict[str, tuple[int, ...]] = {}
    for meaning, text in written(form, date):
        positions[meaning] = tuple(range(len(src), len(src) + len(text)))
        src += text
    year = [(position,) for position in positions["year"]]
    month, day = (
        # a number of two digits is copied digit by digit; a name or a single digit decides both
        [(position,) for position in positions[part]]
        if src[positions[part][0]].isdigit() and getattr(date, part) >= 10
        else [positions[part]] * 2
        for part in ("month", "day")
    )
    return Pair(tuple(src), tuple(date.isoformat()), (*year, (), *month, (), *day))
