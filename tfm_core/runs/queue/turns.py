"""Whose run is next: the line serves the visitors in turn, each one's runs in their order.

This is round robin, the simplest fair queueing (Nagle 1987, RFC 970): who starts eight runs delays
each other visitor by one of them. A run that ended lately was a turn, too, so a visitor who comes
later does not stand behind another's second run. The statuses of the runs say what was served:
nothing else is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from tfm_core.runs.status import Status

LATELY_SECONDS = 900.0
"""How long a turn counts after its run ended: newcomers overtake a waiting run no longer."""


def was_served(status: Status, *, now: float) -> bool:
    """Return whether a run trains or trained lately. now: Unix time.

    A heartbeat in the far future is of a clock that was set back.
    """
    if status.is_alive:
        return True
    return status.heartbeat is not None and abs(now - status.heartbeat) < LATELY_SECONDS


def place(waiting: Sequence[Hashable], served: Sequence[Hashable], owner: Hashable) -> int:
    """Return how many waiting runs a new run of ``owner`` stands behind.

    waiting, served: the owner of each run, those that wait in their order. The n-th run of an
    owner, served or waiting, stands behind all waiting runs that are the n-th or an earlier one of
    theirs.
    """
    turns = Counter(served)
    own = turns[owner] + sum(other == owner for other in waiting)
    behind = 0
    for index, other in enumerate(waiting):
        if turns[other] <= own:
            behind = index + 1
        turns[other] += 1
    return behind
