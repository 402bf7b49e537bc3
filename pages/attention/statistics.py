"""What heads do at a step of a run, measured once and kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pages.i18n import _
from tfm_core.inspect.attention import alignment, head_labels, head_statistics
from tfm_core.inspect.attention.alignment import AlignmentScore
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.head_labels import HeadLabels
from tfm_core.inspect.attention.head_statistics import HeadStatistics
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.inspect.attention.validation import ValidationFigures


def statistics(run: Run, step: int) -> Mapping[str, HeadStatistics]:
    """Return the figures of every attention module on the run's examples. Raises ValueError."""
    run.snapshot(step)  # says in a sentence what is wrong with it
    return head_statistics.of_step(
        run.folder, step, snapshot_path(run.folder, step).stat().st_mtime_ns
    )


def alignments(run: Run, step: int) -> Mapping[str, AlignmentScore]:
    """Return the alignment scores of a step on the same examples; maybe none."""
    run.snapshot(step)
    return alignment.of_step(run.folder, step, snapshot_path(run.folder, step).stat().st_mtime_ns)


def labels(run: Run, example: Example, kind: str, *, is_own: bool = False) -> HeadLabels:
    """Return what each head of a kind of attention does, in the session's language.

    is_own: the example is the visitor's, not one of the run's.
    """
    if is_own:
        found = head_labels.of_example(run.experiment, example, kind)
    else:
        found = head_labels.of_step(run, example.step, kind)
    return HeadLabels(tuple(map(_, found.short)), tuple(map(_, found.whole)), found.n_examples)


def over_validation(run: Run) -> ValidationFigures:
    """Return the figures over the validation set, by the last checkpoint. Raises ValueError."""
    return _over_validation(run.folder, checkpoint_mark(run))


@lru_cache(maxsize=8)
def _over_validation(folder: Path, mark: int) -> ValidationFigures:
    from tfm_core.inspect.attention.validation import measured_over_validation

    return measured_over_validation(Run(folder))
