"""Which head to look at while a text is written: the one that aligns best, where that is known."""

from __future__ import annotations

import numpy as np

from tfm_core.inspect.attention.alignment import can_be_scored, score
from tfm_core.probe.labels import layer_of
from tfm_core.runs.run import Run


def aligning_head(run: Run) -> tuple[int, int] | None:
    """Return layer and head, from 0, with the most attention on true sources in the last snapshot.

    None where no head can be held against a true alignment, or nothing was kept to do so.
    """
    try:
        probe, steps = run.probe(), run.snapshot_steps()
        if not steps or not can_be_scored(run.experiment, probe):
            return None
        scores = score(run.experiment, probe, run.snapshot(steps[-1]))
    except (OSError, ValueError, LookupError):  # being written, or without its maps
        return None
    known = {name: each.share for name, each in scores.items() if not np.isnan(each.share).all()}
    if not known:
        return None
    name = max(known, key=lambda one: float(np.nanmax(known[one])))
    return layer_of(name), int(np.nanargmax(known[name]))
