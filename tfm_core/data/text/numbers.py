"""Numbers: “four thousand and forty two” to 4 0 4 2. Unspoken zeros must be written."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.data.text.task import JoinedTask, Pair, Spelling, check_tokens
from tfm_core.data.vocabulary import Vocabulary

# fmt: off
ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on


@dataclass(frozen=True)
class NumbersTask(JoinedTask):
    """Number words of up to ``n_digits`` digits, to those digits."""

    src_gap = " "
    spelling = Spelling("numbers", "plain")
    n_digits: int
    name: str = "numbers"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The words that numbers of this size need."""
        words = ONES[:10] if self.n_digits == 1 else [*ONES, *TENS]
        words = [*words, "hundred", "and"] if self.n_digits > 2 else words
        return Vocabulary(tuple([*words, "thousand"] if self.n_digits > 3 else words))

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """Digits."""
        return Vocabulary(tuple("0123456789"))

    def sample(self, rng: random.Random) -> Pair:
        """Draw evenly from all numbers."""
        return number_pair(rng.randrange(10**self.n_digits))

    def every(self, limit: int) -> list[Pair] | None:
        """Return all numbers, if they are at most ``limit``."""
        end: int = 10**self.n_digits
        return [number_pair(n) for n in range(end)] if end <= limit else None

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into words, in any case, with or without hyphens. Raises ValueError."""
        words = re.sub(r"[-\s,.]+", " ", text.lower()).split()
        longest = TEXT_TASKS[self.name].max_src_len(self.n_digits)
        return check_tokens(words, self.src_vocabulary, longest=longest)

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the digits; None where the words are no number. “and” may be left out."""
        words = [word for word in src if word != "and"]
        number = _read(words)
        if number is None or [w for w in number_pair(number).src if w != "and"] != words:
            return None
        return tuple(str(number))


def number_pair(number: int) -> Pair:
    """Return the words and digits of a number from 0 to 999,999.

    A digit comes from the words that name it; a zero that no word names comes from the “hundred”
    or “thousand” that says that a digit stands there.
    """
    if number == 0:
        return Pair(("zero",), ("0",), ((0,),))
    words: list[str] = []
    sources: list[tuple[int, ...]] = []
    thousands, rest = divmod(number, 1000)
    if thousands:
        sources = _group(thousands, words, scale=())
        words.append("thousand")
        scale = (len(words) - 1,)
        sources[-1] += scale
        sources += _group(rest, words, scale=scale)
    else:
        sources = _group(rest, words, scale=())
    digits = tuple(str(number))
    return Pair(tuple(words), digits, tuple(sources[-len(digits) :]))


def _group(value: int, words: list[str], *, scale: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Append the words of 0 to 999, and return the word positions of its three digits."""
    hundreds, rest = divmod(value, 100)
    hundred = tens = ones = scale
    if hundreds:
        words += [ONES[hundreds], "hundred"]
        hundred = (len(words) - 2, len(words) - 1)
        tens = ones = (len(words) - 1,)
    if rest and words:
        words.append("and")
    if rest >= 20:
        words.append(TENS[rest // 10 - 2])
        tens = ones = (len(words) - 1,)
        rest %= 10
        if rest:
            words.append(ONES[rest])
            ones = (len(words) - 1,)
    elif rest:
        words.append(ONES[rest])
        ones = (len(words) - 1,)
        tens = ones if rest >= 10 else tens
    return [hundred, tens, ones]


def _read(words: list[str]) -> int | None:
    """Return the number that words may mean; only writing it again shows whether they do."""
    value = total = 0
    for word in words:
        if word == "thousand":
            total, value = value * 1000, 0
        elif word == "hundred":
            value *= 100
        elif word in ONES:
            value += ONES.index(word)
        elif word in TENS:
            value += 10 * (TENS.index(word) + 2)
        else:
            return None
    return total + value if words and total + value < 10**6 else None
