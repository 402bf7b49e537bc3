"""Which head to look at while a text is written: the one that aligns best, where that is known."""

from __future__ import annotations

from tfm_core.inspect.attention.alignment import best_of, can_be_scored, score
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
    best = best_of(scores)
    return None if best is None else (layer_of(best[0]), best[1])
