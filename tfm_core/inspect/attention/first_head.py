"""Which head to open on: the one that shows most of what its kind of attention has learned.

Where the true alignment is known that is the head with the most attention on it. Elsewhere it is
the head whose rows differ most: the share of its attention that would have to move for every query
to read the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from tfm_core.inspect.attention import alignment
from tfm_core.inspect.symptoms import in_heads
from tfm_core.probe.labels import layer_of, modules_by_kind
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run

Place = tuple[int, int]
"""Layer and head, from 0."""


def first_heads(run: Run) -> Mapping[str, Place]:
    """Return the head to open on for each kind of attention, by the last snapshot; maybe none."""
    try:
        step = run.snapshot_steps()[-1]
        run.snapshot(step)
        changed = snapshot_path(run.folder, step).stat().st_mtime_ns
        return _first_heads(run.folder, step, changed)
    except (OSError, ValueError, LookupError):  # being written, damaged or without maps
        return {}


@lru_cache(maxsize=64)
def _first_heads(folder: Path, step: int, changed: int) -> Mapping[str, Place]:
    run = Run(folder)
    scores = alignment.of_step(folder, step, changed)
    differences = in_heads.of_snapshot(run.experiment, run.probe(), run.snapshot(step))
    first = {}
    for kind, modules in modules_by_kind(run.experiment).items():
        if all(module in scores for module in modules):
            best = alignment.best_of({module: scores[module] for module in modules})
        else:
            kept = {name: differences[name].constant for name in modules if name in differences}
            best = max(
                ((name, int(np.argmax(moved))) for name, moved in kept.items()),
                key=lambda place: float(kept[place[0]][place[1]]),
                default=None,
            )
        if best is not None:
            first[kind] = (layer_of(best[0]), best[1])
    return first
