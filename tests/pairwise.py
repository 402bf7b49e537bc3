"""A few combinations in which every two choices of different settings meet once."""

import itertools
from collections.abc import Callable, Collection, Iterable
from typing import Any

from tests.nightly import IS_NIGHTLY


def crossed(first: Iterable[Any], second: Iterable[Any], *, rounds: int = 1) -> list[Any]:
    """Return pairs that hold each value of both, in so many ways; all pairs in a nightly run."""
    one, other = list(first), list(second)
    if IS_NIGHTLY:
        return list(itertools.product(one, other))
    numbers = range(max(len(one), len(other)))
    pairs = [
        (one[(k + 5 * turn) % len(one)], other[k % len(other)])
        for turn in range(rounds)
        for k in numbers
    ]
    return list(dict.fromkeys(pairs))


def pairwise(
    allowed: Callable[[dict[str, Any]], bool] = lambda settings: True,
    **choices: Collection[Any],
) -> list[dict[str, Any]]:
    """Return allowed combinations that hold each pair of choices that any of them can hold.

    Greedy, and the same each time: the next is always the first of those with the most new pairs.
    """
    names = list(choices)
    every = [dict(zip(names, one, strict=True)) for one in itertools.product(*choices.values())]
    pairs = [set(itertools.combinations(one.items(), 2)) for one in every if allowed(one)]
    open_pairs = set().union(*pairs)
    chosen = []
    while open_pairs:
        best = max(pairs, key=lambda one: len(one & open_pairs))
        open_pairs -= best
        chosen.append(dict(item for pair in best for item in pair))
    return [{name: one[name] for name in names} for one in chosen]
