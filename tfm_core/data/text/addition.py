"""Addition, digit by digit: “12+34” to “46”, where a carry may run through every column."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.data.text.task import JoinedTask, Pair, Spelling, check_tokens
from tfm_core.data.vocabulary import Vocabulary
from tfm_core.sentences import StudentError

_SUM = re.compile(r"([0-9]+)\+([0-9]+)")


@dataclass(frozen=True)
class AdditionTask(JoinedTask):
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
        return _pair(rng.randrange(end), rng.randrange(end))

    def every(self, limit: int) -> list[Pair] | None:
        """Return all sums, if they are at most ``limit``."""
        end: int = 10**self.n_digits
        return [_pair(a, b) for a in range(end) for b in range(end)] if end**2 <= limit else None

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


def _pair(a: int, b: int) -> Pair:
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
