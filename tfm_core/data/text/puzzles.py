"""Puzzles over symbols whose true answer is known: orders, brackets, parity, two-sum, selecting.

Copy, reverse and sort are the smallest tasks, whose attention maps are known beforehand: a model
that copies attends along the diagonal, one that reverses along the other diagonal, and one that
sorts attends to equal digits, the first of them first.
Brackets of several kinds are the Dyck language (Chomsky & Schützenberger 1963), which attention
cannot recognise at every length, nor parity (Hahn 2020, "Theoretical Limitations of Self-Attention
in Neural Sequence Models"). Copying past distractors is the selective copying of Gu & Dao 2023,
"Mamba", section 3.1.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tfm_core.data.text.task import Pair, Spelling, TextTask, check_tokens
from tfm_core.data.vocabulary import Vocabulary

Tokens = tuple[str, ...]
Answer = tuple[Tokens, tuple[tuple[int, ...], ...]]
"""The target, and for each of its tokens the source positions it comes from."""

LETTERS = tuple("abcdefghijklmnop")
DIGITS = tuple("0123456789")
CLOSING = {"(": ")", "[": "]"}
BLANK = "."
TOTAL = 10
BALANCED, UNBALANCED = "balanced", "unbalanced"
EVEN, ODD = "even", "odd"
PAIR, NO_PAIR = "pair", "none"


class Puzzle(NamedTuple):
    """What a puzzle asks. A source has rounds of ``slots``, each a choice of symbols.

    answer: the target of a source, None where it has none. draw(rng, longest): a source that
    ``answer`` takes; None for any of one slot.
    """

    slots: tuple[Tokens, ...]
    answers: Tokens
    answer: Callable[[Sequence[str]], Answer | None]
    draw: Callable[[random.Random, int], Tokens] | None = None


@dataclass(frozen=True)
class PuzzleTask(TextTask):
    """A puzzle whose sources have 1 to ``longest`` rounds."""

    src_gap = " "
    tgt_gap = " "
    spelling = Spelling("symbols", "spaced")
    name: str
    longest: int

    @property
    def slots(self) -> tuple[Tokens, ...]:
        """The choices of symbols in a round."""
        return PUZZLES[self.name].slots

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The symbols."""
        return Vocabulary(tuple(itertools.chain(*self.slots)))

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """What is answered: symbols, or labels."""
        return Vocabulary(PUZZLES[self.name].answers)

    def sample(self, rng: random.Random) -> Pair:
        """Draw a source."""
        puzzle = PUZZLES[self.name]
        if puzzle.draw is None:
            src = tuple(rng.choices(self.slots[0], k=rng.randint(1, self.longest)))
        else:
            src = puzzle.draw(rng, self.longest)
        found = puzzle.answer(src)
        assert found is not None
        return Pair(src, *found)

    def every(self, limit: int) -> list[Pair] | None:
        """Return all sources that have an answer, if no more than ``limit`` must be tried."""
        size = math.prod(map(len, self.slots))
        if sum(size**n for n in range(1, self.longest + 1)) > limit:
            return None
        return [
            Pair(src, *found)
            for n in range(1, self.longest + 1)
            for src in itertools.product(*self.slots * n)
            if (found := PUZZLES[self.name].answer(src)) is not None
        ]

    def tokenize(self, text: str) -> Tokens:
        """Cut into single symbols; spaces and commas may stand between them."""
        tokens = re.sub(r"[\s,;]+", "", text.lower())
        longest = self.longest * len(self.slots)
        return check_tokens(tokens, self.src_vocabulary, longest=longest, kind="symbol")

    def solve(self, src: Sequence[str]) -> Tokens | None:
        """Return the true answer; None where the source has none."""
        whole, rest = divmod(len(src), len(self.slots))
        slots = self.slots * whole
        if not src or rest or not all(s in slot for s, slot in zip(src, slots, strict=True)):
            return None
        found = PUZZLES[self.name].answer(src)
        return None if found is None else found[0]


def _ordered(src: Sequence[str], order: Iterable[int]) -> Answer:
    places = tuple(order)
    return tuple(src[at] for at in places), tuple((at,) for at in places)


def _balance(src: Sequence[str]) -> Answer:
    waiting: list[str] = []
    is_balanced = True
    for symbol in src:
        if symbol in CLOSING:
            waiting.append(CLOSING[symbol])
        elif not waiting or waiting.pop() != symbol:
            is_balanced = False
            break
    label = BALANCED if is_balanced and not waiting else UNBALANCED
    return (label,), (tuple(range(len(src))),)


def _brackets(rng: random.Random, longest: int) -> Tokens:
    """Draw balanced brackets, and in half of the cases change one of them, or exchange some.

    Exchanged ones are as many of each kind: counting does not tell them. From half of ``longest``
    on: of shorter ones there are too few that are balanced.
    """
    waiting: list[str] = []
    src: list[str] = []
    n = 2 * rng.randint(longest // 4, longest // 2)
    while len(src) < n:
        must_close = len(waiting) == n - len(src)
        if waiting and (must_close or rng.random() < 0.5):
            src.append(waiting.pop())
        else:
            opening = rng.choice(tuple(CLOSING))
            src.append(opening)
            waiting.append(CLOSING[opening])
    kind = rng.random()
    if kind < 0.25:
        at = rng.randrange(n)
        symbols = [symbol for pair in CLOSING.items() for symbol in pair if symbol != src[at]]
        src[at] = rng.choice(symbols)
    while 0.25 <= kind < 0.5 and _balance(src)[0] == (BALANCED,):
        first, second = rng.sample(range(n), 2)
        src[first], src[second] = src[second], src[first]
    return tuple(src)


def _parity(src: Sequence[str]) -> Answer:
    ones = tuple(at for at, bit in enumerate(src) if bit == "1")
    return (ODD if len(ones) % 2 else EVEN,), (ones,)


def _two_sum(src: Sequence[str]) -> Answer:
    for first, second in itertools.combinations(range(len(src)), 2):
        if int(src[first]) + int(src[second]) == TOTAL:
            return (PAIR,), ((first, second),)
    return (NO_PAIR,), ((),)


def _digits(rng: random.Random, longest: int) -> Tokens:
    """Draw digits without a pair, and in half of the cases put one in."""
    length = rng.randint(2, longest)
    sides = [rng.choice((digit, TOTAL - digit)) for digit in range(1, 5)]
    free = [0, *sides]
    src = [str(rng.choice(free)) for _ in range(length)]
    if rng.random() < 0.5:
        first, second = rng.sample(range(length), 2)
        digit = rng.choice(sides)
        src[first], src[second] = str(digit), str(TOTAL - digit)
    return tuple(src)


def _select(src: Sequence[str]) -> Answer | None:
    letters = [at for at, symbol in enumerate(src) if symbol != BLANK]
    return _ordered(src, letters) if letters else None


def _letters_and_dots(rng: random.Random, longest: int) -> Tokens:
    length = rng.randint(1, longest)
    src = [rng.choice(LETTERS) if rng.random() < 0.5 else BLANK for _ in range(length)]
    src[rng.randrange(length)] = rng.choice(LETTERS)  # one at least
    return tuple(src)


def _keys_and_letters(rng: random.Random, longest: int) -> Tokens:
    rounds = range(rng.randint(1, longest))
    return tuple(symbol for _ in rounds for symbol in (rng.choice(DIGITS), rng.choice(LETTERS)))


def _by_key(src: Sequence[str]) -> Answer:
    order = sorted(range(0, len(src), 2), key=lambda at: src[at])
    return tuple(src[at + 1] for at in order), tuple((at, at + 1) for at in order)


_BRACKETS = tuple(itertools.chain(*CLOSING.items()))
PUZZLES = {
    "copy": Puzzle((LETTERS,), LETTERS, lambda src: _ordered(src, range(len(src)))),
    "reverse": Puzzle((LETTERS,), LETTERS, lambda src: _ordered(src, reversed(range(len(src))))),
    # of equal digits, the first of them first
    "sort": Puzzle(
        (DIGITS,), DIGITS, lambda src: _ordered(src, sorted(range(len(src)), key=src.__getitem__))
    ),
    # the letters, and none of the dots
    "select": Puzzle(((*LETTERS, BLANK),), LETTERS, _select, _letters_and_dots),
    # letters in the order of the digits before them
    "sort-by-key": Puzzle((DIGITS, LETTERS), LETTERS, _by_key, _keys_and_letters),
    "brackets": Puzzle((_BRACKETS,), (BALANCED, UNBALANCED), _balance, _brackets),
    # whether the number of ones is even
    "parity": Puzzle((("0", "1"),), (EVEN, ODD), _parity),
    # whether two digits add up to ten
    "two-sum": Puzzle((DIGITS,), (PAIR, NO_PAIR), _two_sum, _digits),
}
