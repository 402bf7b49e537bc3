"""Tasks of numbers: their words, their sums digit by digit, and arithmetic on a clock.

“four thousand and forty two” is 4 0 4 2: unspoken zeros must be written. In “12+34” a carry may run
through every column. “12 + 50” is 3 where 59 is 0 (Power et al. 2022, arXiv 2201.02177).
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.choices.variants.tasks import OPERATIONS
from tfm_core.data.text.task import Pair, Spelling, TextTask, check_tokens
from tfm_core.data.vocabulary import Vocabulary
from tfm_core.sentences import StudentError

# fmt: off
ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on


@dataclass(frozen=True)
class NumbersTask(TextTask):
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


_SUM = re.compile(r"([0-9]+)\+([0-9]+)")


@dataclass(frozen=True)
class AdditionTask(TextTask):
    """The sum of two numbers of up to ``n_digits`` digits each, written without leading zeros."""

    spelling = Spelling("sum", "plain")
    n_digits: int
    name: str = "addition"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """Digits and the plus sign."""
        return Vocabulary(tuple("0123456789+"))

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """Digits."""
        return Vocabulary(tuple("0123456789"))

    def sample(self, rng: random.Random) -> Pair:
        """Draw both numbers evenly from all that have at most ``n_digits`` digits."""
        end = 10**self.n_digits
        return _sum_pair(rng.randrange(end), rng.randrange(end))

    def every(self, limit: int) -> list[Pair] | None:
        """Return all sums, if they are at most ``limit``."""
        end: int = 10**self.n_digits
        return (
            [_sum_pair(a, b) for a in range(end) for b in range(end)] if end**2 <= limit else None
        )

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into characters; spaces and a final “=” are dropped. Raises ValueError."""
        written = re.sub(r"\s+", "", text).removesuffix("=")
        tokens = check_tokens(written, self.src_vocabulary, longest=10_000, kind="character")
        match = _SUM.fullmatch(written)
        if match is None:
            raise StudentError("“{written}” is not a sum. Write it as 12+34.", written=written[:30])
        if max(map(len, match.groups())) > self.n_digits:
            raise StudentError(
                "Each number may have up to {n_digits} digits.", n_digits=self.n_digits
            )
        return tokens

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the digits of the sum; None where the source is not a sum."""
        match = _SUM.fullmatch("".join(src))
        return None if match is None else tuple(str(int(match[1]) + int(match[2])))


def _sum_pair(a: int, b: int) -> Pair:
    first, second, total = str(a), str(b), str(a + b)
    end = len(first) + 1 + len(second)
    alignment = []
    for column in reversed(range(len(total))):  # 0 = ones
        column = min(column, max(len(first), len(second)) - 1)  # a new digit is a carry from there
        positions = []
        if column < len(first):
            positions.append(len(first) - 1 - column)
        if column < len(second):
            positions.append(end - 1 - column)
        alignment.append(tuple(positions))
    return Pair((*first, "+", *second), tuple(total), tuple(alignment))


@dataclass(frozen=True)
class ModularAdditionTask(TextTask):
    """An operation of a and b, modulo ``modulus``; each number below it is one token."""

    spelling = Spelling("residues", "plain")
    modulus: int
    operation: str = "add"
    name: str = "modular-addition"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The numbers."""
        return Vocabulary(tuple(map(str, range(self.modulus))))

    def sample(self, rng: random.Random) -> Pair:
        """Draw both numbers evenly."""
        first = int(OPERATIONS[self.operation].divides)
        return self._pair(rng.randrange(self.modulus), rng.randrange(first, self.modulus))

    def every(self, limit: int) -> list[Pair] | None:
        """Return all pairs, if they are at most ``limit``."""
        chosen = OPERATIONS[self.operation]
        if chosen.n_pairs(self.modulus) > limit:
            return None
        seconds = range(int(chosen.divides), self.modulus)
        return [self._pair(a, b) for a in range(self.modulus) for b in seconds]

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Return both numbers; the sign between them may be left out. Raises ValueError."""
        signs = re.escape(OPERATIONS[self.operation].signs)
        numbers = re.sub(rf"(?<=[0-9])\s*[{signs}]\s*(?=[0-9])", " ", text)
        written = re.findall(r"[0-9]+|[^0-9\s=]+", numbers)
        tokens = check_tokens(written, self.src_vocabulary, longest=10_000)
        if len(tokens) != 2:
            raise StudentError(
                "Write two numbers, such as {example}.", example=self.join_src(("12", "34"))
            )
        return tokens

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the answer; None where the source is not two numbers, or divides by 0."""
        if len(src) != 2 or not set(src) <= set(self.src_vocabulary.tokens):
            return None
        a, b = map(int, src)
        if OPERATIONS[self.operation].divides and b == 0:
            return None
        return self._pair(a, b).tgt

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write both numbers with the sign between them."""
        return f" {OPERATIONS[self.operation].signs[0]} ".join(tokens)

    def _pair(self, a: int, b: int) -> Pair:
        found = OPERATIONS[self.operation].result(a, b, self.modulus)
        return Pair((str(a), str(b)), (str(found),), ((0, 1),))
