"""A study: one way to train, arms that differ from it in a few settings, and the runs of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from tfm_core.choices.config import Experiment
from tfm_core.inspect.differences import is_same_but_seed, runs_by_seed
from tfm_core.runs.run import Run

Begins = Literal["beginning", "best", "last"]
"""Where an arm begins: anew, or at the best or the last checkpoint of the base's run."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the trainings. label: for sentences, or of the button that starts it.

    changes: dotted path -> value, or a function from the base's value to it. step: of the
    checkpoint that it continues from, or 0.
    """

    name: str
    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    begins: Begins = "beginning"
    step: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Trainings side by side.

    base: what all of them share. arms: the right way first. metrics: of ``compare.curves.METRICS``.
    """

    name: str
    title: str
    base: Experiment
    arms: tuple[Arm, ...]
    metrics: tuple[str, ...] = ("loss", "validation-accuracy")

    def experiment(self, arm: Arm) -> Experiment:
        """Return what an arm trains."""
        return changed(self.base, arm.changes)

    @property
    def experiments(self) -> dict[str, Experiment]:
        """What each arm trains, by its name."""
        return {arm.name: self.experiment(arm) for arm in self.arms}

    def arm(self, name: str) -> Arm:
        """Return an arm by its name. Raises KeyError for none."""
        return {arm.name: arm for arm in self.arms}[name]


def changed(base: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """Return an experiment with settings at dotted paths, ``model.n_heads``, changed.

    A path without a dot, ``model``, is a section; its value is a config.

    Raises ConfigError where it has no such setting, or not with such a value.
    """
    return _changed(base, tuple(changes.items()))


@lru_cache(maxsize=128)  # a page needs each of them at every rerun
def _changed(base: Experiment, changes: tuple[tuple[str, Any], ...]) -> Experiment:
    values = base.model_dump()
    for path, value in changes:
        section, _dot, name = path.partition(".")
        if not name:
            values[section] = value.model_dump()
            continue
        values[section][name] = value(values[section].get(name)) if callable(value) else value
    return Experiment.parse(values)


@dataclass(frozen=True, slots=True, eq=False)
class StudyRuns:
    """The runs of a study.

    by_arm: name of the arm -> seed, ascending -> run. stopped: name of an arm -> a run that ended
    early, where no other has its seed.
    """

    by_arm: Mapping[str, Mapping[int, Run]]
    stopped: Mapping[str, Run] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """All of them, arm by arm."""
        return [run for runs in self.by_arm.values() for run in runs.values()]

    @property
    def seed(self) -> int:
        """The seed that most arms have, the lowest of these; 0 where there is no run."""
        seeds = [seed for runs in self.by_arm.values() for seed in runs]
        return min(seeds, key=lambda seed: (-seeds.count(seed), seed), default=0)

    @property
    def shown(self) -> dict[str, Run]:
        """The run of each arm that has one with the seed that most have, in their order."""
        seed = self.seed
        return {name: runs[seed] for name, runs in self.by_arm.items() if seed in runs}

    def ended(self, arm: Arm) -> dict[int, Run]:
        """Return the runs of an arm that train no longer, by seed."""
        runs = self.by_arm[arm.name]
        return {seed: run for seed, run in runs.items() if not run.status.is_active}


def runs_of(study: Study, runs: Iterable[Run]) -> StudyRuns:
    """Return the newest run of each arm and seed; one that was stopped or damaged is none.

    runs: the newest first.
    """
    known = [run for run in runs if run.problem is None]
    by_arm: dict[str, dict[int, Run]] = {}
    stopped: dict[str, Run] = {}
    for name, wanted in study.experiments.items():
        by_arm[name] = found = runs_by_seed(wanted, known)
        same = [run for run in known if is_same_but_seed(run.experiment, wanted)]
        rest = [run for run in same if run.experiment.seed not in found and run.meta.parent is None]
        if rest:
            stopped[name] = min(rest, key=lambda run: run.experiment.seed)
    return StudyRuns(by_arm, stopped)


def missing(study: Study, found: StudyRuns, *, own: bool = False) -> dict[str, Experiment]:
    """Return the experiment of each arm without a run, with the seed of the others.

    own: a recorded run is none.
    """
    there = {name for name, run in found.shown.items() if not (own and run.meta.recorded)}
    seed = found.seed if found.runs else study.base.seed
    return {
        name: experiment.replace(seed=seed)
        for name, experiment in study.experiments.items()
        if name not in there
    }
