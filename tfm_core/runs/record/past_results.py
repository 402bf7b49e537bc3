"""What runs reached that differ in one setting: how it did before, by the value of that setting.

Two runs are comparable where all that decides what is learned is the same, but the seed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfm_core.config import Experiment
from tfm_core.config.training import default_weight_decay
from tfm_core.runs.run import Run
from tfm_core.training.progress import is_of_divergence

_NO_MATTER = frozenset({"seed", "training.snapshots"})
"""Settings that a model does not learn from; a seed is what comparable runs may differ in."""
_DECAY, _OPTIMISER = "training.weight_decay", "training.optimizer"


@dataclass(frozen=True, slots=True)
class Ended:
    """A training that is over: its settings by path, and whether its loss became infinite."""

    settings: Mapping[str, Any]
    diverged: bool = False


@dataclass(frozen=True, slots=True)
class Reached:
    """What the runs of one value reached.

    median: share of right answers, of the ``n`` that have one; None where none has. n_diverged: how
    many had to stop because their loss became infinite.
    """

    n: int
    median: float | None
    n_diverged: int = 0


def ended(run: Run) -> Ended | None:
    """Return the settings of a run that finished or diverged; None for any other."""
    status = run.status
    diverged = status.state == "failed" and is_of_divergence(status.reason or "")
    if run.problem is not None or run.meta.parent is not None:
        return None
    if status.state != "finished" and not diverged:
        return None
    return Ended(settings_of(run.experiment), diverged)


def settings_of(experiment: Experiment) -> dict[str, Any]:
    """Return what a model learns from, by dotted path."""
    values = experiment.model_dump()
    flat = {
        f"{section}.{name}": value
        for section in ("model", "task", "training")
        for name, value in values[section].items()
    }
    return {path: value for path, value in flat.items() if path not in _NO_MATTER}


def alike(settings: Mapping[str, Any], other: Mapping[str, Any], path: str) -> bool:
    """Return whether two experiments are the same but for one setting, and what follows from it.

    Weight decay follows the optimiser where it is the optimiser's own.
    """
    if settings.keys() != other.keys() or path not in settings:
        return False
    free = {path}
    if path == _OPTIMISER and all(
        one[_DECAY] == default_weight_decay(one[path]) for one in (settings, other)
    ):
        free.add(_DECAY)
    return all(value == other[name] for name, value in settings.items() if name not in free)


def reached(shares: Sequence[float | None], n_diverged: int = 0) -> Reached:
    """Return the scores of runs; None for one that was not measured."""
    known = [share for share in shares if share is not None]
    return Reached(len(known), statistics.median(known) if known else None, n_diverged)
