"""Which runs of an experiment that teaches there are already, and which are missing. Torch-free.

They are known by their configurations alone, so a run counts that was begun anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tfm_core.config import Experiment
from tfm_core.inspect.compare.seeds import counts
from tfm_core.inspect.experiments.demonstration import Demonstration
from tfm_core.runs.run import Run


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The runs of an experiment. by_arm: name of the arm -> seed, ascending -> run."""

    by_arm: Mapping[str, Mapping[int, Run]]

    @property
    def runs(self) -> list[Run]:
        """All of them, arm by arm."""
        return [run for runs in self.by_arm.values() for run in runs.values()]

    @property
    def seed(self) -> int:
        """The seed that most arms have, the lowest of these; 0 where there is no run."""
        seeds = [seed for runs in self.by_arm.values() for seed in runs]
        return min(seeds, key=lambda seed: (-seeds.count(seed), seed), default=0)

    def of_seed(self, seed: int) -> dict[str, Run]:
        """Return the run of each arm that has one with this seed, in the order of the arms."""
        return {name: runs[seed] for name, runs in self.by_arm.items() if seed in runs}

    @property
    def is_whole(self) -> bool:
        """Whether every arm has a run with the seed that most have."""
        return len(self.of_seed(self.seed)) == len(self.by_arm)


class Shelf:
    """Runs by what they learn, with any seed."""

    def __init__(self, runs: Iterable[Run]) -> None:
        """Take runs, the newest first."""
        self._known: dict[tuple[object, ...], dict[int, list[Run]]] = {}
        for run in runs:
            if run.problem is None:
                by_seed = self._known.setdefault(_but_seed(run.experiment), {})
                by_seed.setdefault(run.experiment.seed, []).append(run)

    def of(self, demonstration: Demonstration) -> Found:
        """Return the newest runs of an experiment; one that was stopped or damaged is none."""
        return Found(
            {arm.name: self._newest(demonstration.experiment(arm)) for arm in demonstration.arms}
        )

    def _newest(self, experiment: Experiment) -> dict[int, Run]:
        by_seed = sorted(self._known.get(_but_seed(experiment), {}).items())
        newest = {seed: next(filter(counts, runs), None) for seed, runs in by_seed}
        return {seed: run for seed, run in newest.items() if run is not None}


def missing(demonstration: Demonstration, found: Found) -> dict[str, Experiment]:
    """Return what is still to be trained of each arm, with the seed that the others have."""
    there = found.of_seed(found.seed)
    return {
        arm.name: demonstration.experiment(arm).replace(seed=found.seed)
        for arm in demonstration.arms
        if arm.name not in there
    }


def _but_seed(experiment: Experiment) -> tuple[object, ...]:
    return experiment.model, experiment.task, experiment.training
