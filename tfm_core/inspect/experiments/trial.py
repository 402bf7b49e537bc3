"""Runs that belong together: a way to train, and ways that differ from it in a few settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tfm_core.choices.config import Experiment


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the runs. label: for sentences; changes: dotted path -> value."""

    name: str
    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Runs to be seen side by side.

    base: what all of them do. arms: the right way first. metrics: of ``compare.curves.METRICS``.
    """

    name: str
    title: str
    base: Experiment
    arms: tuple[Arm, ...]
    metrics: tuple[str, ...] = ("loss", "validation-accuracy")

    def experiment(self, arm: Arm) -> Experiment:
        """Return what an arm trains."""
        return changed(self.base, arm.changes)

    def arm(self, name: str) -> Arm:
        """Return an arm by its name. Raises KeyError for none."""
        return {arm.name: arm for arm in self.arms}[name]


def changed(base: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """Return an experiment with settings at dotted paths, ``model.n_heads``, changed."""
    return _changed(base, tuple(changes.items()))


@lru_cache(maxsize=128)  # a page needs each of them at every rerun
def _changed(base: Experiment, changes: tuple[tuple[str, Any], ...]) -> Experiment:
    values = base.model_dump()
    for path, value in changes:
        section, _dot, name = path.partition(".")
        values[section][name] = value
    return Experiment.parse(values)
