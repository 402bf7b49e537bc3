"""What heads do at a step of a run, measured once and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pages.i18n import _
from tfm_core.config import Experiment
from tfm_core.inspect.attention import alignment, head_statistics
from tfm_core.inspect.attention.example import Example
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


@dataclass(frozen=True, slots=True)
class Labels:
    """What each head of some modules does, layer by layer: in short, and in more words."""

    short: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()

    def spoken(self) -> Labels:
        """Return the labels in the session's language."""
        return Labels(tuple(map(_, self.short)), tuple(map(_, self.whole)))


def labels(run: Run, example: Example, modules: Sequence[str], index: int | None = None) -> Labels:
    """Return what each head of the modules does on an example; none where that is unknown.

    index: of the run's examples; None for one's own, whose words are not kept.
    """
    if index is None:
        return _words(run.experiment, example, modules).spoken()
    path = snapshot_path(run.folder, example.step)
    key = (str(run.folder), example.step, path.stat().st_mtime_ns, index, tuple(modules))
    if key not in _LABELS:
        if len(_LABELS) >= MOST_LABELS:
            _LABELS.clear()
        _LABELS[key] = _words(run.experiment, example, modules)
    return _LABELS[key].spoken()


MOST_LABELS = 2000
_LABELS: dict[tuple[object, ...], Labels] = {}


def _words(experiment: Experiment, example: Example, modules: Sequence[str]) -> Labels:
    figures = head_statistics.of_example(experiment, example)
    if any(module not in figures for module in modules):
        return Labels()
    heads = [
        (figures[module], head, share)
        for module in modules
        for head, share in enumerate(_aligned(experiment, example, module))
    ]
    return Labels(
        tuple(head_statistics.describe(*head, is_short=True) for head in heads),
        tuple(head_statistics.describe(*head) for head in heads),
    )


def _aligned(experiment: Experiment, example: Example, module: str) -> Sequence[float]:
    """Return each head's share on the true source tokens, 0 where they are not known."""
    none = [0.0] * len(example.attention[module])
    if module not in alignment.scored_modules(experiment):
        return none
    try:
        weights = example.attention[module][None]
        scored = alignment.score_maps(experiment, module, [example.item], weights)
    except ValueError:  # of one's own example the truth is not known
        return none
    return [float(share) for share in scored.share]


def over_validation(run: Run) -> ValidationFigures:
    """Return the figures over the validation set, by the last checkpoint. Raises ValueError."""
    return _over_validation(run.folder, checkpoint_mark(run))


@lru_cache(maxsize=8)
def _over_validation(folder: Path, mark: int) -> ValidationFigures:
    from tfm_core.inspect.attention.validation import measured_over_validation

    return measured_over_validation(Run(folder))


@lru_cache(maxsize=128)
def _statistics(folder: Path, step: int, changed: int) -> dict[str, HeadStatistics]:
    run = Run(folder)
    return head_statistics.of_snapshot(run.experiment, run.probe(), run.snapshot(step))
