"""Copy, reverse and sort: the smallest tasks, whose attention maps are known beforehand.

A model that copies attends along the diagonal, one that reverses along the other diagonal, and one
that sorts attends to equal digits, the first of them first.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.data.text.task import JoinedTask, Pair, check_tokens
from tfm_core.data.vocabulary import Vocabulary

LETTERS = tuple("abcdefghijklmnop")
DIGITS = tuple("0123456789")


def copy_order(src: Sequence[str]) -> list[int]:
    """Return the source position of each target token: the same one."""
    return list(range(len(src)))


def reverse_order(src: Sequence[str]) -> list[int]:
    """Return the source position of each target token, counted from the end."""
    return list(reversed(range(len(src))))


def sort_order(src: Sequence[str]) -> list[int]:
    """Return the source position of each target token; equal tokens keep their order."""
    return sorted(range(len(src)), key=lambda i: src[i])


@dataclass(frozen=True)
class SequenceTask(JoinedTask):
    """A target that is the source in another order, 1 to ``longest`` tokens."""

    src_gap = " "
    tgt_gap = " "
    name: str
    symbols: tuple[str, ...]
    order: Callable[[Sequence[str]], list[int]]
    longest: int

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The symbols."""
        return Vocabulary(self.symbols)

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """The same symbols."""
        return Vocabulary(self.symbols)

    def sample(self, rng: random.Random) -> Pair:
        """Draw a length, then symbols."""
        return self._pair(tuple(rng.choices(self.symbols, k=rng.randint(1, self.longest))))

    def every(self, limit: int) -> list[Pair] | None:
        """Return all sequences of all lengths, if they are at most ``limit``."""
        total = 0
        for length in range(1, self.longest + 1):
            total += len(self.symbols) ** length
            if total > limit:
                return None
        return [
            self._pair(src)
            for length in range(1, self.longest + 1)
            for src in itertools.product(self.symbols, repeat=length)
        ]

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into single symbols; spaces and commas may stand between them."""
        tokens = re.sub(r"[\s,;]+", "", text.lower())
        return check_tokens(tokens, self.src_vocabulary, longest=self.longest, kind="symbol")

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the tokens in their new order; None where one is not a symbol of the task."""
        if not src or not set(src) <= set(self.symbols):
            return None
        return tuple(src[i] for i in self.order(src))

    def _pair(self, src: tuple[str, ...]) -> Pair:
        order = self.order(src)
        return Pair(src, tuple(src[i] for i in order), tuple((i,) for i in order))


def copy_task(size: int) -> SequenceTask:
    """Return the task of writing up to ``size`` letters again."""
    return SequenceTask("copy", LETTERS, copy_order, size)


def reverse_task(size: int) -> SequenceTask:
    """Return the task of writing up to ``size`` letters from their end."""
    return SequenceTask("reverse", LETTERS, reverse_order, size)


def sort_task(size: int) -> SequenceTask:
    """Return the task of writing up to ``size`` digits in ascending order."""
    return SequenceTask("sort", DIGITS, sort_order, size)
