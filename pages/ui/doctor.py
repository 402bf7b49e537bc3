"""What the training doctor says of a run, looked up once for each time that the run changed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pages.i18n import N_, _
from pages.ui import runs_access
from tfm_core.inspect.symptoms import diagnosis
from tfm_core.inspect.symptoms.cures import Symptom, SymptomKind
from tfm_core.runs.run import Run

_BEGINS: dict[SymptomKind, str] = {
    "diverged": N_("diverges"),
    "exploding": N_("gradients explode"),
    "vanishing": N_("gradients vanish"),
    "dead-heads": N_("dead heads"),
    "overfits": N_("by heart from here"),
}
"""What is written on the curve at the step where a symptom began, where there is such a step."""


def symptoms(run: Run) -> tuple[Symptom, ...] | None:
    """Return what is wrong with a run now, the gravest first; None where it can't be judged."""
    status = run.status
    if status.state in ("queued", "starting"):
        return None
    curves = runs_access.curves(run)
    steps = tuple(run.snapshot_steps())
    size = (len(curves.steps), len(curves.validation), curves.steps.last("step"))
    kept = tuple(_changed(run, which) for which in ("last", "best"))
    return _symptoms(run.folder, status.state, status.reason, steps, (*size, *kept))


def begins(run: Run) -> list[tuple[int, str]]:
    """Return the steps to mark on a run's curves, each with a word or two."""
    found = symptoms(run) or ()
    return [(one.step, _(_BEGINS[one.kind])) for one in found if one.kind in _BEGINS]


def _changed(run: Run, which: str) -> int:
    try:
        return (run.folder / "checkpoints" / which).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=256)
def _symptoms(
    folder: Path,
    state: str,
    reason: str | None,
    steps: tuple[int, ...],
    _size: tuple[object, ...],
) -> tuple[Symptom, ...] | None:
    run = Run(folder)
    return diagnosis.of_run(run, runs_access.curves(run), steps)
