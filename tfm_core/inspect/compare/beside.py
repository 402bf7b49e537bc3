"""The same example in several runs at the same step. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfm_core.probe.types import Probe
from tfm_core.sentences import Paragraph, StudentError

_SHORTLY = 0.9  # of the steps of the shortest run


def same_example(probe: Probe, theirs: Probe, index: int) -> int:
    """Return where another run keeps an example. Raises StudentError where it does not."""
    item = probe.items[index]
    for other, their_item in enumerate(theirs.items):
        if probe.images is not None or theirs.images is not None:
            is_same = (
                probe.images is not None
                and theirs.images is not None
                and np.array_equal(theirs.images[other], probe.images[index])
            )
        else:
            is_same = all(their_item.get(side) == item.get(side) for side in ("src", "tgt"))
        if is_same:
            return other
    raise StudentError(Paragraph("compare/other-lacks-example"))


def common_step(steps: Sequence[Sequence[int]]) -> int | None:
    """Return the last step to compare runs at: the last of the shortest run, None without steps.

    Where they do not all have a snapshot of it, one shortly before it that all have.
    """
    kept = [one for one in steps if one]
    if not kept:
        return None
    last = min(max(one) for one in kept)
    shared = [step for step in set(kept[0]).intersection(*kept[1:]) if step <= last]
    return max(shared) if shared and max(shared) >= _SHORTLY * last else last


def nearest(step: int, steps: Sequence[int]) -> int:
    """Return the step of a run that is nearest to the one that is asked for."""
    return min(steps, key=lambda one: (abs(one - step), one))
