"""Two maps of the same tokens side by side, and the same example in several runs; torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfm_core.probe.types import Bools, Floats, Probe
from tfm_core.sentences import Paragraph, StudentError


@dataclass(frozen=True, slots=True, eq=False)
class MapDifference:
    """How two maps differ.

    difference: (Q, K), right minus left. moved: share of attention on other keys, mean over queries
    (total variation distance). agreeing: share of queries with the same strongest key.
    """

    difference: Floats
    moved: float
    agreeing: float


def compare(left: Floats, right: Floats, may_attend: Bools | None = None) -> MapDifference:
    """Compare two maps (Q, K) of one head each, without rows that may attend to nothing.

    Raises StudentError if shapes differ.
    """
    if left.shape != right.shape:
        raise StudentError(
            Paragraph("attention/maps-differ", left=_by(left.shape), right=_by(right.shape))
        )
    difference = np.asarray(right, np.float32) - np.asarray(left, np.float32)
    allowed = np.ones(left.shape, np.bool_) if may_attend is None else may_attend
    counted = allowed.any(-1)
    if not counted.any():
        return MapDifference(difference, 0.0, 1.0)
    by_sink = np.abs(difference.sum(-1))[counted]  # what moved to a sink, or from it
    moved = (np.abs(difference).sum(-1)[counted] + by_sink) / 2
    same = left.argmax(-1) == right.argmax(-1)
    return MapDifference(difference, float(moved.mean()), float(same[counted].mean()))


def check_same_tokens(
    left: tuple[Sequence[str], Sequence[str]], right: tuple[Sequence[str], Sequence[str]]
) -> None:
    """Raise StudentError if two maps have different (query, key) tokens."""
    for name, first, second in zip(("query", "key"), left, right, strict=True):
        if tuple(first) != tuple(second):
            index = next(
                (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
                min(len(first), len(second)),
            )
            raise StudentError(Paragraph("attention/tokens-differ", name=name, place=index + 1))


def _by(shape: tuple[int, ...]) -> str:
    return " by ".join(str(size) for size in shape)


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
    """Return the last step of the shortest run, or one shortly before it that all have."""
    kept = [one for one in steps if one]
    if not kept:
        return None
    last = min(max(one) for one in kept)
    shared = [step for step in set(kept[0]).intersection(*kept[1:]) if step <= last]
    return max(shared) if shared and max(shared) >= _SHORTLY * last else last


def nearest(step: int, steps: Sequence[int]) -> int:
    """Return the step of a run that is nearest to ``step``."""
    return min(steps, key=lambda one: (abs(one - step), one))
