"""Whose run is next: the line serves the visitors in turn, each one's runs in their order.

This is round robin, the simplest fair queueing (Nagle 1987, RFC 970): who starts eight runs delays
each other visitor by one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


def place(waiting: Sequence[Hashable], training: Sequence[Hashable], owner: Hashable) -> int:
    """Return how many waiting runs a new run of ``owner`` stands behind.

    waiting, training: the owner of each run, those that wait in their order. The n-th run of an
    owner that trains or waits stands behind all waiting runs that are the n-th or an earlier one of
    theirs.
    """
    turns = Counter(training)
    own = turns[owner] + sum(other == owner for other in waiting)
    behind = 0
    for index, other in enumerate(waiting):
        if turns[other] <= own:
            behind = index + 1
        turns[other] += 1
    return behind
