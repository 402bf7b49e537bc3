"""Sequences of letters that only their own beginning explains: nothing of them is worth keeping.

Repeats: random letters, of which a stretch comes again (Olsson et al. 2022, arXiv 2209.11895).
Chains: each sequence has its own Markov chain (Edelman et al. 2024, arXiv 2402.11004).
Back copies: one Markov chain for all, but some letters call for the letter before them (the
bigram-backcopy task of Guo et al. 2024, arXiv 2410.13835).
Lines: numbers x and y = w x + noise, with another w in each sequence (Garg et al. 2022, arXiv
2208.01066, where they are real numbers, and x and w vectors).
Column sums: binary addition, a bit of each number, then that of their sum.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from math import log

LETTERS = tuple(string.ascii_letters)
STATES = tuple("abc")
TRIGGERS = frozenset("xyz")
"""After one of these comes the letter before it."""
ALPHABET = tuple(string.ascii_lowercase)
INPUTS = range(1, 7)
TENTHS = range(-20, 21)
"""Of which a slope has some: -2.0 to 2.0."""
NOISE = {-1: 0.25, 0: 0.5, 1: 0.25}
"""What is added to y, and how likely."""


@dataclass(frozen=True, slots=True)
class Generator:
    """Draws sequences. alphabet: the letters of them. draw: the letters of one, given its length.

    counts: of a sequence, whether the loss counts each letter. floor: the lowest possible mean loss
    of what counts, in nats, of some sequences. unit: of the tokens.
    """

    alphabet: tuple[str, ...]
    draw: Callable[[random.Random, int], tuple[str, ...]]
    counts: Callable[[Sequence[str]], list[bool]] = lambda tokens: [True] * len(tokens)
    floor: Callable[[Sequence[Sequence[str]]], float] = lambda sequences: 0.0
    unit: str = "characters"


def repeats(rng: random.Random, length: int) -> tuple[str, ...]:
    """Draw different letters, then a stretch of them again: from where, and how long, is drawn."""
    n_first = rng.randint(-(-length // 2), length - length // 4)
    n_again = length - n_first
    start = rng.randint(0, n_first - n_again)
    first = rng.sample(LETTERS, n_first)
    return (*first, *first[start : start + n_again])


def fixed_repeats(rng: random.Random, length: int) -> tuple[str, ...]:
    """Draw different letters, then the same again: each letter's place says which one follows."""
    first = rng.sample(LETTERS, -(-length // 2))
    return (*first, *first)[:length]


def chain(rng: random.Random, length: int) -> tuple[str, ...]:
    """Draw a Markov chain, each row of its transitions uniform on the simplex, and walk along it.

    It starts in any state alike.
    """
    rows = {state: [rng.expovariate(1.0) for _ in STATES] for state in STATES}
    states = [rng.choice(STATES)]
    for _ in range(length - 1):
        states += rng.choices(STATES, rows[states[-1]])
    return tuple(states)


@cache
def next_letters() -> Mapping[str, Mapping[str, float]]:
    """Return the probability of each letter after each one that is no trigger."""
    rng, rows = random.Random("back copy"), {}
    for letter in ALPHABET:
        if letter not in TRIGGERS:
            drawn = [rng.expovariate(1.0) ** 2 for _ in ALPHABET]
            rows[letter] = {to: rate / sum(drawn) for to, rate in zip(ALPHABET, drawn, strict=True)}
    return rows


def back_copy(rng: random.Random, length: int) -> tuple[str, ...]:
    """Walk along the chain of ``next_letters``; after a trigger comes the letter before it."""
    sums = _sums()
    letters = [rng.choice(tuple(sums))]
    while len(letters) < length:
        if letters[-1] in TRIGGERS:
            letters.append(letters[-2])
        else:
            letters += rng.choices(ALPHABET, cum_weights=sums[letters[-1]])
    return tuple(letters)


@cache
def _sums() -> Mapping[str, Sequence[float]]:
    return {letter: tuple(accumulate(row.values())) for letter, row in next_letters().items()}


def rounded(tenths: int, x: int) -> int:
    """Return w x of a slope in tenths as a whole number, halves upwards."""
    return (2 * tenths * x + 10) // 20


def line(rng: random.Random, length: int) -> tuple[str, ...]:
    """Draw a slope, and numbers x, each with its y behind it."""
    tenths = rng.choice(TENTHS)
    n = -(-length // 2)
    inputs, noise = rng.choices(INPUTS, k=n), rng.choices([*NOISE], [*NOISE.values()], k=n)
    pairs = ((x, rounded(tenths, x) + e) for x, e in zip(inputs, noise, strict=True))
    return tuple(str(number) for pair in pairs for number in pair)[:length]


def seen_before(tokens: Sequence[str]) -> list[bool]:
    """Return of each token whether the one before it stands anywhere earlier.

    Then what followed there is known; of a repeat this is so from its second token on.
    """
    return [t > 0 and tokens[t - 1] in tokens[: t - 1] for t in range(len(tokens))]


def answers(tokens: Sequence[str]) -> list[bool]:
    """Return of each number of a line whether it is a y."""
    return [t % 2 == 1 for t in range(len(tokens))]


@dataclass(frozen=True, slots=True)
class Floors:
    """The mean loss per letter, in nats, of three ways to predict a chain.

    uniform: every state alike. unigram: by how often each state came so far, plus one. bigram: by
    what followed the last state so far, plus one: the best there is, since rows are drawn uniformly
    (the posterior mean of a Dirichlet distribution).
    """

    uniform: float
    unigram: float
    bigram: float


def floors(sequences: Sequence[Sequence[str]]) -> Floors:
    """Return the floors of some chains."""
    n = len(STATES)
    unigram = bigram = 0.0
    for states in sequences:
        seen = dict.fromkeys(STATES, 1)
        followed = {state: dict.fromkeys(STATES, 1) for state in (*STATES, "")}
        last = ""
        for t, state in enumerate(states):
            unigram -= log(seen[state] / (t + n))
            after = followed[last]
            bigram -= log(after[state] / sum(after.values()))
            seen[state] += 1
            after[state] += 1
            last = state
    total = sum(map(len, sequences))
    return Floors(log(n), unigram / total, bigram / total)


@dataclass(frozen=True, slots=True)
class CopyFloors:
    """The mean loss per letter, in nats, of two ways to predict back copies.

    bigram: by the letter before alone, as the rules let letters follow. copying: by the rules, the
    best there is.
    """

    bigram: float
    copying: float


def _copied(length: int) -> Mapping[str, Mapping[str, float]]:
    """Return the probability of each letter after each trigger, where nothing else is known."""
    rows = next_letters()
    found = {trigger: dict.fromkeys(rows, 0.0) for trigger in TRIGGERS}
    now = dict.fromkeys(rows, 1 / len(rows))  # at a place: each letter that is no trigger
    before = dict.fromkeys(rows, 0.0)  # at the place before it
    for _ in range(length - 2):
        for letter, share in now.items():
            for trigger in TRIGGERS:
                found[trigger][letter] += share * rows[letter][trigger]
        came = {to: sum(now[letter] * rows[letter][to] for letter in rows) for to in rows}
        back = {to: before[to] * sum(rows[to][trigger] for trigger in TRIGGERS) for to in rows}
        now, before = {to: came[to] + back[to] for to in rows}, now
    return {
        trigger: {letter: share / sum(counted.values()) for letter, share in counted.items()}
        for trigger, counted in found.items()
    }


def copy_floors(sequences: Sequence[Sequence[str]]) -> CopyFloors:
    """Return the floors of some sequences of back copies."""
    rows, copied = next_letters(), _copied(len(sequences[0]))
    bigram = copying = len(sequences) * log(len(rows))
    for letters in sequences:
        for last, letter in pairwise(letters):
            bigram -= log(copied[last][letter] if last in TRIGGERS else rows[last][letter])
            copying -= 0.0 if last in TRIGGERS else log(rows[last][letter])
    total = sum(map(len, sequences))
    return CopyFloors(bigram / total, copying / total)


def likelihoods(x: int, y: int) -> list[float]:
    """Return of each slope how likely it makes y."""
    return [NOISE.get(y - rounded(tenths, x), 0.0) for tenths in TENTHS]


def losses_on_line(tokens: Sequence[str]) -> list[float]:
    """Return the loss of each y, in nats, of the best that can be done: Bayes' rule.

    Slopes are drawn evenly, so the weight of each is how likely it makes the examples before.
    """
    numbers = list(map(int, tokens))
    weights = [1.0] * len(TENTHS)
    losses = []
    for x, y in zip(numbers[::2], numbers[1::2], strict=False):
        before = sum(weights)
        weights = [a * b for a, b in zip(weights, likelihoods(x, y), strict=True)]
        losses.append(log(before / sum(weights)))
    return losses


def _of_lines(sequences: Sequence[Sequence[str]]) -> float:
    losses = [loss for tokens in sequences for loss in losses_on_line(tokens)]
    return sum(losses) / len(losses)


# Binary addition column by column, ones first: “1 1 0  1 0 0  0 0 1” is 3 + 1 = 4. A column needs
# one bit of those before it, the carry, and the bits of the last column tell it.

BITS = tuple("01")
BASE = len(BITS)
WIDTH = 3
"""Tokens of a column."""


def column_sum(rng: random.Random, length: int) -> tuple[str, ...]:
    """Draw two numbers and write their sum: all columns that fit are drawn but the last, 0 0."""
    n = max(1, length // WIDTH - 1)
    return written_sum(
        [rng.randrange(BASE) for _ in range(n)], [rng.randrange(BASE) for _ in range(n)], length
    )


def written_sum(a: Sequence[int], b: Sequence[int], length: int) -> tuple[str, ...]:
    """Return the columns of two numbers, each as its bits from the ones on, as so many tokens."""
    tokens: list[str] = []
    carry = 0
    rest = [0] * (-(-length // WIDTH) - len(a))
    for bit_a, bit_b in zip([*a, *rest], [*b, *rest], strict=True):
        carry, bit = divmod(bit_a + bit_b + carry, BASE)
        tokens += (BITS[bit_a], BITS[bit_b], BITS[bit])
    return tuple(tokens[:length])


def is_sum_bit(tokens: Sequence[str]) -> list[bool]:
    """Return of each token whether it is a bit of the sum."""
    return [t % WIDTH == WIDTH - 1 for t in range(len(tokens))]


def read_sum(tokens: Sequence[str]) -> tuple[int, int, int]:
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
class PartialScores:
    """The share of a sum's bits that are right by a way to add that misses something.

    no_carry: carries are left out. one_column: a carry is what both bits of the column before give
    alone, so one that runs on through a 1 is missed.
    """

    no_carry: float
    one_column: float


def partial_scores(sequences: Sequence[Sequence[str]]) -> PartialScores:
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
    return PartialScores(right / total, one_column / total)


GENERATORS: Mapping[str, Generator] = {
    "repeats": Generator(LETTERS, repeats, seen_before),
    "fixed-repeats": Generator(LETTERS, fixed_repeats, seen_before),
    "markov-chains": Generator(STATES, chain, floor=lambda drawn: floors(drawn).bigram),
    "back-copy": Generator(ALPHABET, back_copy, floor=lambda drawn: copy_floors(drawn).copying),
    "column-sums": Generator(BITS, column_sum, is_sum_bit),
    "lines": Generator(tuple(map(str, range(-13, 14))), line, answers, _of_lines, unit="words"),
}
"""By the name of a task."""
