"""What heads do at a step of a run, measured once and kept."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pages.attention.selection_link import Selection
from pages.i18n import _
from tfm_core.inspect.attention import head_statistics
from tfm_core.inspect.attention.head_statistics import HeadStatistics
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import snapshot_path

if TYPE_CHECKING:
    from tfm_core.inspect.attention.validation import ValidationFigures


def statistics(run: Run, step: int) -> dict[str, HeadStatistics]:
    """Return the figures of every attention module on the run's examples. Raises ValueError."""
    path = snapshot_path(run.folder, step)
    run.snapshot(step)  # says in a sentence what is wrong with it
    return _statistics(run.folder, step, path.stat().st_mtime_ns)


def labels(run: Run, step: int, modules: list[str]) -> tuple[str, ...]:
    """Return a few words for each head of the modules, layer by layer; none where unknown."""
    try:
        figures = statistics(run, step)
    except ValueError:
        return ()
    if any(module not in figures for module in modules):
        return ()
    return tuple(
        _(head_statistics.describe(figures[module], head, is_short=True))
        for module in modules
        for head in range(len(figures[module].entropy))
    )


def over_validation(run: Run) -> ValidationFigures:
    """Return the figures over the validation set, by the last checkpoint. Raises ValueError."""
    return _over_validation(run.folder, checkpoint_mark(run))


@lru_cache(maxsize=8)
def _over_validation(folder: Path, mark: int) -> ValidationFigures:
    from tfm_core.inspect.attention.validation import measured_over_validation

    return measured_over_validation(Run(folder))


def labels_near(
    run: Run, selection: Selection, modules: list[str], step: int, steps: tuple[int, ...]
) -> tuple[str, ...]:
    """Return the labels of the shown heads; an own example was read at the newest weights."""
    if selection.example is None:
        if not steps:
            return ()
        step = steps[-1]
    return labels(run, step, modules)


@lru_cache(maxsize=128)
def _statistics(folder: Path, step: int, changed: int) -> dict[str, HeadStatistics]:
    run = Run(folder)
    return head_statistics.of_snapshot(run.experiment, run.probe(), run.snapshot(step))
