"""Dates: from the ways people write them to ISO 8601, character by character.

The month name of one form is the digit pair of another; the year stands first or last; and the
weekday of the last form must be ignored.
"""

from __future__ import annotations

import calendar
import datetime
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.config.text_tasks import TEXT_TASKS
from tfm_core.data.text.task import JoinedTask, Pair, check_tokens
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

Part = tuple[str, str]  # what it says ("year", "month", "day" or ""), and how it is written


def ordinal(day: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, ... 11th, ... 21st, ..."""
    if day in (11, 12, 13):
        return f"{day}th"
    return f"{day}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th') }"


def _long(year: int, month: int, day: int) -> list[Part]:
    return [
        ("month", MONTHS[month - 1]),
        ("", " "),
        ("day", str(day)),
        ("", ", "),
        ("year", str(year)),
    ]


def _short(year: int, month: int, day: int) -> list[Part]:
    return [
        ("day", str(day)),
        ("", " "),
        ("month", MONTHS[month - 1][:3]),
        ("", " "),
        ("year", str(year)),
    ]


def _slashes(year: int, month: int, day: int) -> list[Part]:
    return [("year", str(year)), ("", "/"), ("month", str(month)), ("", "/"), ("day", str(day))]


def _ordinal(year: int, month: int, day: int) -> list[Part]:
    ending = ordinal(day).removeprefix(str(day))
    return [
        ("day", str(day)),
        ("", f"{ending} of "),
        ("month", MONTHS[month - 1]),
        ("", " "),
        ("year", str(year)),
    ]


def _korean(year: int, month: int, day: int) -> list[Part]:
    return [
        ("year", str(year)),
        ("", "년 "),
        ("month", str(month)),
        ("", "월 "),
        ("day", str(day)),
        ("", "일"),
    ]


def _weekday(year: int, month: int, day: int) -> list[Part]:
    name = WEEKDAYS[calendar.weekday(year, month, day)]
    return [("", f"{name}, "), *_ordinal(year, month, day)]


_MONTH = "|".join(MONTHS)
_WEEKDAY = "|".join(WEEKDAYS)
_OF = rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th) of (?P<month>{_MONTH}) (?P<year>\d{{4}})"
# How a form is written, and how it is read: "March 5, 2019", "5 Mar 2019", "2019/3/5",
# "5th of March 2019", "2019년 3월 5일", "Tuesday, 5th of March 2019".
FORMS: tuple[tuple[Callable[[int, int, int], list[Part]], str], ...] = (
    (_long, rf"(?P<month>{_MONTH}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}})"),
    (
        _short,
        rf"(?P<day>\d{{1,2}}) (?P<month>{'|'.join(m[:3] for m in MONTHS)}) (?P<year>\d{{4}})",
    ),
    (_slashes, r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})"),
    (_ordinal, _OF),
    (_korean, r"(?P<year>\d{4})년 (?P<month>\d{1,2})월 (?P<day>\d{1,2})일"),
    (_weekday, rf"(?:{_WEEKDAY}), {_OF}"),
)


@dataclass(frozen=True)
class DatesTask(JoinedTask):
    """Dates of a hundred years in the first ``n_forms`` forms, to ``2019-03-05``."""

    n_forms: int
    name: str = "dates"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """Every character of the forms that are mixed."""
        seen = {
            character
            for write, _ in FORMS[: self.n_forms]
            for month in range(1, 13)
            for day in range(1, 8)  # every weekday and every ending
            for _, text in write(2019, month, day)
            for character in text
        }
        return Vocabulary(tuple(sorted(seen | set("0123456789"))))

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """Digits and the hyphen."""
        return Vocabulary(tuple("0123456789-"))

    def sample(self, rng: random.Random) -> Pair:
        """Draw a day and a form, each evenly."""
        day = datetime.date.fromordinal(rng.randrange(_FIRST_DAY, _END_DAY))
        return _pair(day, FORMS[rng.randrange(self.n_forms)][0])

    def every(self, limit: int) -> list[Pair] | None:
        """Return every day in every form, if they are at most ``limit``."""
        if (_END_DAY - _FIRST_DAY) * self.n_forms > limit:
            return None
        days = [datetime.date.fromordinal(n) for n in range(_FIRST_DAY, _END_DAY)]
        return [_pair(day, write) for day in days for write, _ in FORMS[: self.n_forms]]

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into characters; the case of names, spare spaces and a final period don't matter."""
        text = " ".join(text.split()).removesuffix(".")
        text = re.sub(r"[A-Za-z]+", lambda word: _canonical(word[0]), text)
        longest = TEXT_TASKS[self.name].max_src_len(self.n_forms)
        return check_tokens(text, self.src_vocabulary, longest=longest, kind="character")

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the ISO date; None where the source is no date in one of the forms."""
        for _, pattern in FORMS[: self.n_forms]:
            match = re.fullmatch(pattern, "".join(src), re.ASCII)
            if match is not None:
                return _iso(match["year"], match["month"], match["day"])
        return None


def _pair(date: datetime.date, write: Callable[[int, int, int], list[Part]]) -> Pair:
    src = ""
    where: dict[str, tuple[int, ...]] = {}
    for says, text in write(date.year, date.month, date.day):
        where[says] = tuple(range(len(src), len(src) + len(text)))
        src += text
    year = [(position,) for position in where["year"]]
    written = {"month": date.month, "day": date.day}
    month, day = (
        # a number of two digits is copied digit by digit; a name or a single digit decides both
        [(position,) for position in where[says]]
        if src[where[says][0]].isdigit() and written[says] >= 10
        else [where[says]] * 2
        for says in ("month", "day")
    )
    return Pair(tuple(src), tuple(date.isoformat()), (*year, (), *month, (), *day))


def _iso(year: str, month: str, day: str) -> tuple[str, ...] | None:
    names = [name[:3] for name in MONTHS]
    number = names.index(month[:3]) + 1 if month[:3] in names else int(month)
    try:
        return tuple(datetime.date(int(year), number, int(day)).isoformat())
    except ValueError:  # the 30th of February
        return None


def _canonical(word: str) -> str:
    """Return a word of a date in its usual case."""
    names = {*MONTHS, *WEEKDAYS, *(name[:3] for name in MONTHS)}
    return word.capitalize() if word.capitalize() in names else word.lower()
