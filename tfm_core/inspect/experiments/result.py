"""The runs of an experiment that teaches: which there are, and what each showed, as numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.choices.config import Experiment
from tfm_core.inspect.compare.curves import figures
from tfm_core.inspect.compare.seeds import counts
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.data.text_data import TextData
    from tfm_core.inspect.experiments.trial import Trial


WRITTEN = 200
"""Unseen examples that a model generates answers for."""
_LAST_STEPS = 20


@dataclass(frozen=True, slots=True)
class Generated:
    """The share right of n unseen examples that a model generates.

    tokens: mean share of tokens right in any order, of the longer of answer and target.
    """

    share: float
    n: int
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished run showed; None: unknown.

    label: for sentences. accuracy, sequence_accuracy: given the true tokens so far, on n_unseen
    test examples, or else validation. loss: on these, not smoothed; training_loss: mean of the last
    steps. confidence: mean probability of its answers on the probe. validations: (step, accuracy).
    largest_gradient: its norm, before clipping. guessing: ln(classes). diverged: why, in a
    sentence. written: what it generates; sharpness: mean of the largest weight of each row of
    self-attention before the first update.
    """

    label: str
    accuracy: float | None = None
    sequence_accuracy: float | None = None
    n_unseen: int = 0
    loss: float | None = None
    training_loss: float | None = None
    confidence: float | None = None
    validations: tuple[tuple[int, float], ...] = ()
    largest_gradient: float | None = None
    guessing: float | None = None
    diverged: str | None = None
    written: Generated | None = None
    sharpness: float | None = None

    @property
    def score(self) -> float | None:
        """Return the accuracy used to compare runs: of sequences if measured, else of tokens."""
        return self.accuracy if self.sequence_accuracy is None else self.sequence_accuracy

    def first_step(self, share: float) -> int | None:
        """Return the first validation at which so large a share of tokens was right, or None."""
        return next((step for step, right in self.validations if step and right >= share), None)


def read(
    run: Run, label: str, *, writes_freely: bool = False, looks_sharply: bool = False
) -> Result:
    """Return what a finished run showed; ``written`` and ``sharpness`` only if asked for."""
    curves, experiment = run.thinned_curves(), run.experiment
    found, outcome = figures(curves), run.outcome
    is_tested = found["test_accuracy"] is not None
    n_unseen = getattr(experiment.task, "n_test" if is_tested else "n_validation", 0)
    seen, last = curves.unseen, curves.steps["loss"][-_LAST_STEPS:].astype(np.float64)
    norms = curves.steps["grad_norm"].astype(np.float64)
    norms = norms[np.isfinite(norms)]
    return Result(
        label,
        accuracy=found["test_accuracy" if is_tested else "accuracy"],
        sequence_accuracy=found["test_sequences" if is_tested else "sequences"],
        n_unseen=n_unseen,
        loss=found["test_loss" if is_tested else "loss"],
        training_loss=float(last.mean()) if len(last) and np.isfinite(last).all() else None,
        confidence=_confidence(run),
        validations=tuple(
            (int(step), float(right))
            for step, right in zip(seen["step"], seen["accuracy"], strict=True)
            if math.isfinite(right)
        ),
        largest_gradient=float(norms.max()) if len(norms) else None,
        guessing=curves.started.get("start_loss"),
        diverged=outcome.sentence if outcome is not None and outcome.kind == "diverged" else None,
        written=_written(run) if writes_freely else None,
        sharpness=_sharpness(run) if looks_sharply else None,
    )


def _confidence(run: Run) -> float | None:
    """Return the mean confidence of the last snapshot's answers, without padding."""
    try:
        snapshot = run.snapshot(run.snapshot_steps()[-1])
    except (ValueError, IndexError):
        return None
    if snapshot.confidence is None or snapshot.tokens is None:
        return None
    kept = [
        float(share)
        for row, tokens in zip(snapshot.confidence, snapshot.tokens, strict=True)
        for share in row[: len(tokens)]
    ]
    return float(np.mean(kept)) if kept else None


def _sharpness(run: Run) -> float | None:
    by_kind = modules_by_kind(run.experiment)
    largest: list[float] = []
    try:
        probe, snapshot = run.probe(), run.snapshot(0)
        for index, item in enumerate(probe.attended):
            for module in by_kind.get("encoder") or next(iter(by_kind.values()), []):
                n_queries, n_keys = axes(run.experiment, item, module).shape
                weights = snapshot.attention[module][index, :, :n_queries, :n_keys]
                largest += weights.max(-1).ravel().tolist()
    except (ValueError, KeyError, IndexError):
        return None
    return float(np.mean(largest)) if largest else None


def _written(run: Run) -> Generated | None:
    """Let the last weights answer unseen examples by themselves, greedily."""
    import torch

    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData
    from tfm_core.decoding import greedy
    from tfm_core.inspect.attention.trained import data_of, model_of
    from tfm_core.models.pictures import VisionTransformer

    try:
        model, _step = model_of(run)
        data: TextData = data_as(data_of(run.experiment), TextData)
    except ValueError:
        return None
    if isinstance(model, VisionTransformer):
        return None
    unseen, words = data.validation, data.task.tgt_vocabulary
    n = min(WRITTEN, len(unseen.src))
    with torch.inference_mode():
        ids = greedy(model, unseen.src[:n], max_len=unseen.tgt.size(1) - 1).ids.tolist()
    pairs = [(words.decode(row), pair.tgt) for row, pair in zip(ids, unseen.pairs[:n], strict=True)]
    right = sum(tuple(answer) == tuple(truth) for answer, truth in pairs)
    return Generated(right / n, n, sum(in_any_order(*pair) for pair in pairs) / n)


def in_any_order(answer: Sequence[str], truth: Sequence[str]) -> float:
    """Return the share of tokens that two sequences have in common, in any order."""
    shared = (Counter(answer) & Counter(truth)).total()
    return shared / max(len(answer), len(truth), 1)


@dataclass(frozen=True, slots=True, eq=False)
class ExperimentRuns:
    """The runs of an experiment.

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

    def of_seed(self, seed: int) -> dict[str, Run]:
        """Return the run of each arm that has one with this seed, in the order of the arms."""
        return {name: runs[seed] for name, runs in self.by_arm.items() if seed in runs}

    @property
    def is_whole(self) -> bool:
        """Whether every arm has a run with the seed that most have."""
        return len(self.of_seed(self.seed)) == len(self.by_arm)


class RunIndex:
    """Runs by what they learn, with any seed."""

    def __init__(self, runs: Iterable[Run]) -> None:
        """Take runs, the newest first."""
        self._known: dict[tuple[object, ...], dict[int, list[Run]]] = {}
        for run in runs:
            if run.problem is None:
                by_seed = self._known.setdefault(_but_seed(run.experiment), {})
                by_seed.setdefault(run.experiment.seed, []).append(run)

    def of(self, trial: Trial) -> ExperimentRuns:
        """Return the newest runs of an experiment; one that was stopped or damaged is none."""
        by_arm: dict[str, dict[int, Run]] = {}
        stopped: dict[str, Run] = {}
        for arm in trial.arms:
            by_arm[arm.name] = found = {}
            for seed, runs in self._of(trial.experiment(arm)):
                run = next(filter(counts, runs), None)
                if run is not None:
                    found[seed] = run
                elif own := [one for one in runs if one.meta.parent is None]:
                    stopped.setdefault(arm.name, own[0])
        return ExperimentRuns(by_arm, stopped)

    def _of(self, experiment: Experiment) -> list[tuple[int, list[Run]]]:
        return sorted(self._known.get(_but_seed(experiment), {}).items())


def missing(trial: Trial, found: ExperimentRuns) -> dict[str, Experiment]:
    """Return the experiment of each arm without a run, with the seed of the others."""
    there = found.of_seed(found.seed)
    return {
        arm.name: trial.experiment(arm).replace(seed=found.seed)
        for arm in trial.arms
        if arm.name not in there
    }


def _but_seed(experiment: Experiment) -> tuple[object, ...]:
    return experiment.model, experiment.task, experiment.training
