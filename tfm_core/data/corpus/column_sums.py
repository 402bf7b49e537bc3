"""Binary addition column by column: a bit of each number, then that of their sum, ones first.

“1 1 0  1 0 0  0 0 1” is 3 + 1 = 4. All that a column needs of those before it is one bit, the
carry, and the bits of the last column tell it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

BITS = tuple("01")
BASE = len(BITS)
WIDTH = 3
"""Tokens of a column."""


def columns(rng: random.Random, length: int) -> tuple[str, ...]:
    """Draw two numbers and write their sum: all columns that fit are drawn but the last, 0 0."""
    n = max(1, length // WIDTH - 1)
    return written(
        [rng.randrange(BASE) for _ in range(n)], [rng.randrange(BASE) for _ in range(n)], length
    )


def written(a: Sequence[int], b: Sequence[int], length: int) -> tuple[str, ...]:
    """Return the columns of two numbers, each as its bits from the ones on, as so many tokens."""
    tokens: list[str] = []
    carry = 0
    rest = [0] * (-(-length // WIDTH) - len(a))
    for one, other in zip([*a, *rest], [*b, *rest], strict=True):
        carry, bit = divmod(one + other + carry, BASE)
        tokens += (BITS[one], BITS[other], BITS[bit])
    return tuple(tokens[:length])


def is_sum(tokens: Sequence[str]) -> list[bool]:
    """Return of each token whether it is a bit of the sum."""
    return [t % WIDTH == WIDTH - 1 for t in range(len(tokens))]


def numbers(tokens: Sequence[str]) -> tuple[int, int, int]:
    """Return both numbers and what is written as their sum."""
    whole = tokens[: len(tokens) - len(tokens) % WIDTH]
    a, b, total = (int("".join(whole[part::WIDTH][::-1]), BASE) for part in range(WIDTH))
    return a, b, total


def carries(tokens: Sequence[str]) -> list[int]:
    """Return the carry into each whole column."""
    found = [0]
    for start in range(0, len(tokens) - WIDTH + 1, WIDTH):
        found.append((int(tokens[start]) + int(tokens[start + 1]) + found[-1]) // BASE)
    return found[:-1]


@dataclass(frozen=True, slots=True)
class Known:
    """The share of a sum's bits that are right by a way to add that misses something.

    no_carry: carries are left out. one_column: a carry is what both bits of the column before give
    alone, so one that runs on through a 1 is missed.
    """

    no_carry: float
    one_column: float


def known(sequences: Sequence[Sequence[str]]) -> Known:
    """Return the shares for some sums."""
    right = one_column = total = 0
    for tokens in sequences:
        bits = list(map(int, tokens))
        before = 0
        for column, carry in enumerate(carries(tokens)):
            a, b = bits[WIDTH * column : WIDTH * column + 2]
            right += carry == 0
            one_column += carry == before
            before = int(a + b >= BASE)
            total += 1
    return Known(right / total, one_column / total)
