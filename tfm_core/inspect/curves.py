"""Curves of several runs on one axis, their final and best figures, and what can be compared.

Runs of older versions have no times: their wall clock is estimated from their speed, and their CPU
time is unknown. Torch-free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfm_core.choices.config import Experiment
from tfm_core.facts.batches import Batches
from tfm_core.inspect.differences import differences
from tfm_core.probe.types import Floats
from tfm_core.runs.curves import Curves
from tfm_core.sentences import N_, Paragraph

AxisName = Literal["step", "epoch", "examples", "cpu", "clock"]

AXES: Mapping[AxisName, str] = {
    "step": N_("step"),
    "epoch": N_("epoch"),
    "examples": N_("examples"),
    "cpu": N_("CPU-seconds"),
    "clock": N_("seconds"),
}
"""What each axis counts. ``clock`` is wall clock time without pauses and waiting."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity that a run measures.

    series, column: where it is kept; "validation" is ``Curves.unseen``. kind: what it counts, so
    which settings must agree for a comparison.
    """

    label: str
    series: Literal["steps", "validation"]
    column: str
    kind: Literal["loss", "share", "other"]

    @property
    def is_share(self) -> bool:
        """Whether its values are shares, 0 to 1."""
        return self.kind == "share"


METRICS: Mapping[str, Metric] = {
    "loss": Metric(N_("training loss"), "steps", "loss", "loss"),
    "validation-loss": Metric(N_("validation loss"), "validation", "loss", "loss"),
    "accuracy": Metric(N_("training accuracy"), "steps", "accuracy", "share"),
    "validation-accuracy": Metric(N_("validation accuracy"), "validation", "accuracy", "share"),
    "sequences": Metric(N_("sequence accuracy"), "validation", "sequence_accuracy", "share"),
    "learning-rate": Metric(N_("learning rate"), "steps", "learning_rate", "other"),
    "gradient": Metric(N_("gradient norm"), "steps", "grad_norm", "other"),
    "balance": Metric(N_("imbalance of experts"), "steps", "balance", "other"),
    "speed": Metric(N_("examples per second"), "steps", "examples_per_second", "other"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One metric of one run: values (n,) at x (n,), ascending. is_reckoned: x is estimated."""

    x: Floats
    values: Floats
    is_reckoned: bool = False


def track(curves: Curves, experiment: Experiment, metric: str, axis: AxisName) -> Track | None:
    """Return a metric along an axis; None where the run does not know where it stood on it."""
    kept = METRICS[metric]
    series = curves.steps if kept.series == "steps" else curves.unseen
    values = series[kept.column]
    known = np.isfinite(values)
    steps, values = series["step"][known].astype(np.float64), values[known]
    if axis == "step":
        return Track(steps, values)
    if axis in ("examples", "epoch") and experiment.training is None:
        return None
    if axis == "examples":
        return Track(Batches.of_experiment(experiment).examples(steps), values)
    if axis == "epoch":
        per_epoch = curves.started.get("steps_per_epoch")
        whole = Batches.of_experiment(experiment).whole(steps)
        return Track(whole / per_epoch, values) if per_epoch else None
    found = _clock(curves, experiment) if axis == "clock" else _cpu(curves)
    if found is None:
        return None
    at, seconds, is_reckoned = found
    return Track(np.interp(steps, at, seconds), values, is_reckoned)


def _clock(curves: Curves, experiment: Experiment) -> tuple[Floats, Floats, bool] | None:
    """Return steps, the seconds trained at each, and whether these are estimated."""
    steps, seconds = curves.steps["step"].astype(np.float64), curves.steps["seconds"]
    if not len(steps):
        return None
    if np.isfinite(seconds).all():
        return _from_zero(steps, seconds.astype(np.float64), False)
    speed = curves.steps["examples_per_second"].astype(np.float64)
    if not (np.isfinite(speed) & (speed > 0)).all():
        return None
    examples = Batches.of_experiment(experiment).examples(steps)
    elapsed = np.cumsum(np.diff(examples, prepend=0.0) / speed)
    total = curves.finished.get("seconds")
    if isinstance(total, int | float) and total > 0:
        elapsed *= total / elapsed[-1]  # what measuring took is spread over the steps
    return _from_zero(steps, elapsed, True)


def _cpu(curves: Curves) -> tuple[Floats, Floats, bool] | None:
    steps, seconds = curves.steps["step"].astype(np.float64), curves.steps["cpu_seconds"]
    if not len(steps) or not np.isfinite(seconds).all():
        return None
    return _from_zero(steps, seconds.astype(np.float64), False)


def _from_zero(steps: Floats, seconds: Floats, is_reckoned: bool) -> tuple[Floats, Floats, bool]:
    """Prepend the start, before the first recorded step."""
    return np.concatenate([[0.0], steps]), np.concatenate([[0.0], seconds]), is_reckoned


def figures(curves: Curves) -> dict[str, float | None]:
    """Return the last and the best results on unseen examples, and the test; None: unknown.

    best_loss, best_accuracy: after step 0, with their steps. sequences: accuracy of whole
    sequences.
    """
    unseen, test = curves.unseen, curves.test
    (low, low_step), (high, high_step) = _best(curves, "loss", -1), _best(curves, "accuracy", 1)
    step = curves.steps.last("step")
    return {
        "step": None if step is None else int(step),
        "n_parameters": curves.started.get("n_parameters"),
        "loss": unseen.last("loss"),
        "best_loss": low,
        "best_loss_step": low_step,
        "accuracy": unseen.last("accuracy"),
        "best_accuracy": high,
        "best_accuracy_step": high_step,
        "sequences": unseen.last("sequence_accuracy"),
        "test_loss": test.last("loss"),
        "test_accuracy": test.last("accuracy"),
        "test_sequences": test.last("sequence_accuracy"),
    }


def _best(curves: Curves, column: str, sign: int) -> tuple[float | None, int | None]:
    """Return the best value after step 0 and its step; sign: 1 where the largest is the best."""
    steps, values = curves.unseen["step"], curves.unseen[column].astype(np.float64)
    known = np.isfinite(values) & (steps > 0)
    if not known.any():
        return None, None
    best = int(np.argmax(sign * values[known]))
    return float(values[known][best]), int(steps[known][best])


_HARMLESS = {
    "task.n_train",
    "task.shift",
    "task.rotation",
    "task.scale",
    "task.slant",
    "task.label_noise",
    "task.base",
    "task.trains",
    "task.n_last",
    "task.rank",
    "task.alpha",
    "task.called",
}
"""Settings of a task that change the training alone, not what is asked."""


def caveats(experiments: Sequence[Experiment], metrics: Sequence[str]) -> tuple[str, ...]:
    """Return what keeps values of these metrics from being compared, a sentence each."""
    kinds = {METRICS[name].kind for name in metrics}
    if len(experiments) < 2 or kinds <= {"other"}:
        return ()
    rows = {row.field: row for row in differences(experiments)}
    trained = [one for one in experiments if one.training is not None]
    trainings = {row.field for row in differences(trained)} if trained else set[str]()
    sentences: list[str] = []
    others = [
        row.label
        for field, row in rows.items()
        if field.startswith("task.") and field not in _HARMLESS
    ]
    if "task.name" in rows:
        sentences.append(Paragraph("compare/tasks-differ"))
    elif others:
        sentences.append(Paragraph("compare/task-setting-differs", label=others[0]))
    is_of_training = any(
        METRICS[name].series == "steps" and METRICS[name].kind != "other" for name in metrics
    )
    if is_of_training and "training.label_smoothing" in trainings and "loss" in metrics:
        sentences.append(Paragraph("compare/smoothing-differs"))
    if is_of_training and "task.label_noise" in rows:
        sentences.append(Paragraph("compare/label-noise-differs"))
    if "training.mistakes" in trainings and "loss" in metrics:
        sentences.append(Paragraph("compare/mistake-differs"))
    if is_of_training and "model.dropout" in rows:
        sentences.append(Paragraph("compare/dropout-differs"))
    return tuple(sentences)
