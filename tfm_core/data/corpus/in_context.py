"""Sequences of letters that only their own beginning explains: nothing of them is worth keeping.

Repeats: random letters, of which a stretch comes again (Olsson et al. 2022, arXiv 2209.11895).
Chains: each sequence has its own Markov chain (Edelman et al. 2024, arXiv 2402.11004).
Column sums: see ``column_sums``.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from tfm_core.data.corpus.column_sums import BITS, columns, is_sum

LETTERS = tuple(string.ascii_letters)
STATES = tuple("abc")


@dataclass(frozen=True, slots=True)
class Generator:
    """Draws sequences. alphabet: the letters of them. draw: the letters of one, given its length.

    counts: of a sequence, whether the loss counts each letter.
    """

    alphabet: tuple[str, ...]
    draw: Callable[[random.Random, int], tuple[str, ...]]
    counts: Callable[[Sequence[str]], list[bool]]


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


def seen_before(tokens: Sequence[str]) -> list[bool]:
    """Return of each token whether the one before it stands anywhere earlier.

    Then what followed there is known; of a repeat this is so from its second token on.
    """
    return [t > 0 and tokens[t - 1] in tokens[: t - 1] for t in range(len(tokens))]


def _all(tokens: Sequence[str]) -> list[bool]:
    return [True] * len(tokens)


GENERATORS: Mapping[str, Generator] = {
    "repeats": Generator(LETTERS, repeats, seen_before),
    "fixed-repeats": Generator(LETTERS, fixed_repeats, seen_before),
    "markov-chains": Generator(STATES, chain, _all),
    "column-sums": Generator(BITS, columns, is_sum),
}
"""By the name of a task."""


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
