"""The guided run of good practice: three experiments on digits that differ in one thing each.

They are ordinary runs, found by their experiment. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.inspect.attention.trained import data_of
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run

LessonKind = Literal["plain", "early", "augmented"]
KINDS: tuple[LessonKind, ...] = ("plain", "early", "augmented")
PATIENCE = 6
STEPS = 1200
AUGMENTATION = {"shift": 2.0, "rotation": 10.0, "scale": 0.1}
SECONDS: dict[LessonKind, int] = {"plain": 24, "early": 15, "augmented": 25}
"""CPU-seconds of training on one thread of a plain 2-core machine."""
MIN_WAIT = 3
"""Validations after the best from which a rise is not noise."""
TOP_LOSS = 2.6
"""Where the axis of the loss ends: a little above ln(10), the loss of guessing."""
SPLITS = ("train", "validation", "test")
_WINDOW = 25  # batches whose mean stands for the training loss at a step


@dataclass(frozen=True, slots=True)
class Overfitting:
    """The minimum of the validation loss, and the last validation, for both splits.

    gap: training minus validation accuracy at the last. waited: validations since the minimum.
    """

    step: int
    last_step: int
    validation_best: float
    validation_last: float
    train_best: float
    train_last: float
    gap: float
    waited: int

    @property
    def has_begun(self) -> bool:
        """Whether validation got worse for a while after its best, and training went on better."""
        return (
            self.waited >= MIN_WAIT
            and self.validation_last > self.validation_best
            and self.train_last < self.train_best
        )


def guided(kind: LessonKind) -> Experiment:
    """Return the experiment: no augmentation, the same stopped early, the same augmented.

    The learning rate is constant, low and without weight decay, so that overfitting shows.
    """
    values = default_sections("vit", "mnist-5000")
    values["task"] |= AUGMENTATION if kind == "augmented" else dict.fromkeys(AUGMENTATION, 0.0)
    values["training"] |= {
        "steps": STEPS,
        "batch_size": 128,
        "learning_rate": 0.001,
        "weight_decay": 0.0,
        "schedule": "constant",
        "validate_every": 50,
        "snapshots": 12,
        "patience": PATIENCE if kind == "early" else 0,
        "final_test": False,  # the lesson opens the test set once, at its end
    }
    return Experiment.parse(values)


def find(runs: Iterable[Run]) -> dict[LessonKind, Run]:
    """Return the newest intact guided run of each kind: finished ones first, recorded ones last."""
    wanted = {kind: guided(kind) for kind in KINDS}
    known: dict[LessonKind, Run] = {}
    for run in runs:
        if run.problem is not None:
            continue
        for kind, experiment in wanted.items():
            is_better = kind not in known or (
                _is_finished(run) and not _is_finished(known[kind]) and not run.meta.recorded
            )
            if is_better and run.experiment == experiment:
                known[kind] = run
    return {kind: known[kind] for kind in KINDS if kind in known}


def finished(runs: Mapping[LessonKind, Run]) -> dict[LessonKind, Run]:
    """Return those of the guided runs that have been trained to their end."""
    return {kind: run for kind, run in runs.items() if _is_finished(run)}


def chosen(runs: Mapping[LessonKind, tuple[Run, Curves]]) -> tuple[LessonKind, int, float] | None:
    """Return kind, step and loss of the lowest validation loss of all runs, or None."""
    candidates: list[tuple[float, LessonKind, int]] = []
    for kind, (run, curves) in runs.items():
        rows, at = curves.unseen, curves.best_validation()
        if at is None:
            continue
        if not run.experiment.trained.keeps_best:
            at = len(rows) - 1
        candidates.append((float(rows["loss"][at]), kind, int(rows["step"][at])))
    if not candidates:
        return None
    loss, kind, step = min(candidates)
    return kind, step, loss


def overfitting(curves: Curves) -> Overfitting | None:
    """Return where the validation loss turned, None before two validations after step 0."""
    best = curves.best_validation()
    rows = curves.unseen
    if best is None or not len(curves.steps) or (rows["step"] > 0).sum() < 2:
        return None
    step, last = int(rows["step"][best]), int(rows["step"][-1])
    accuracy = _trained_to(curves, "accuracy", last) - float(rows["accuracy"][-1])
    return Overfitting(
        step,
        last,
        float(rows["loss"][best]),
        float(rows["loss"][-1]),
        _trained_to(curves, "loss", step),
        _trained_to(curves, "loss", last),
        accuracy,
        len(rows) - 1 - best,
    )


def splits_of(experiment: Experiment) -> tuple[pd.DataFrame, int]:
    """Count the pictures of each class (columns) in each split, and those in two splits.

    Raises ValueError.
    """
    names = experiment.task.class_names
    data = data_of(experiment)
    parts: dict[str, Any] = {name: getattr(data, name) for name in SPLITS}
    counts = [np.bincount(part.labels.numpy(), minlength=len(names)) for part in parts.values()]
    prints = [{image.numpy().tobytes() for image in part.images} for part in parts.values()]
    shared = len((prints[0] & prints[1]) | (prints[0] & prints[2]) | (prints[1] & prints[2]))
    return pd.DataFrame(counts, index=SPLITS, columns=names), shared


def _trained_to(curves: Curves, column: str, step: int) -> float:
    known = curves.steps["step"] <= step
    return float(np.nanmean(curves.steps[column][known][-_WINDOW:]))


def _is_finished(run: Run) -> bool:
    return run.status.state == "finished"
