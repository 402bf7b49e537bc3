"""Why validation can look better than training, where it does in a run: only what applies to it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment, built
from tfm_core.probe.types import Floats
from tfm_core.runs.curves import Curves
from tfm_core.sentences import N_, Sentence, joined

MIN_MEASURED = 3
"""Validations in a row that have to be better: fewer may be chance."""
MIN_LOSS_GAP = 0.02
"""Share of the training loss that validation has to be below it."""
MIN_VISIBLE_GAP = 0.01
"""The same as a share of the highest training loss: less cannot be seen on the curve."""
MIN_ACCURACY_GAP = 0.005
"""How far above training's its accuracy has to be instead."""
LAG = 0.1
"""Share of the gap from which a mean that lags is named as a cause."""
_BY_CHANCE = N_("No setting explains it. The validation examples may be easier by chance.")
_UNKNOWN = N_("Your program may use dropout or augmentation; its settings are not recorded.")
_CHANGES = ("shift", "rotation", "scale", "slant")  # random changes of training pictures


def better_validation(
    experiment: Experiment, curves: Curves, window: int
) -> tuple[int, int, Sentence] | None:
    """Return the longest stretch in which validation looks better than training, and why.

    Its first and last step, and the causes that apply; None where there is none. window: how many
    batches the line of training averages, looking back.
    """
    steps, losses = curves.steps["step"], curves.steps["loss"]
    measured = curves.validation
    measured_at = measured["step"]
    rows = np.searchsorted(steps, measured_at, side="right")
    known = (measured_at > 0) & (rows >= 2)
    measured_at, rows = measured_at[known], rows[known]
    if len(measured_at) < MIN_MEASURED:
        return None
    loss, accuracy = (
        (_means(curves.steps[name], rows, window), measured[name][known])
        for name in ("loss", "accuracy")
    )
    with np.errstate(invalid="ignore"):
        top = max(filter(math.isfinite, loss[0].tolist()), default=0.0)
        better = loss[0] - loss[1] > np.maximum(
            MIN_LOSS_GAP * np.abs(loss[0]), MIN_VISIBLE_GAP * top
        )
        better |= accuracy[1] - accuracy[0] > MIN_ACCURACY_GAP
    start, end = _longest(better)
    if end - start < MIN_MEASURED:
        return None
    first, last = int(measured_at[start]), int(measured_at[end - 1])
    gap = _mean(loss[0][start:end] - loss[1][start:end])
    lag = _mean(_lags(losses, rows[start:end], window))
    causes = list(_of_settings(experiment, curves, (first, last), falls=gap > 0))
    if lag > 0 and not lag <= LAG * gap:
        causes.append(
            N_("The training line lags because it averages the last {n} batches.", n=window)
        )
    return first, last, joined(*(causes or [_BY_CHANCE]))


def _of_settings(
    experiment: Experiment, curves: Curves, between: tuple[int, int], *, falls: bool
) -> Iterator[Sentence]:
    """Yield the causes that make training harder. falls: the training loss is above the other."""
    training = experiment.training
    if training is None:
        yield _UNKNOWN
        return
    if dropout := _highest(built(experiment.model).dropout, "model.dropout", curves, between):
        yield N_("Dropout of {share:.0%} is on in training only.", share=dropout)
    if any(getattr(experiment.task, name, 0.0) for name in _CHANGES):
        yield N_("Augmentation makes training pictures harder.")
    if noise := getattr(experiment.task, "label_noise", 0.0):
        yield N_("{share:.0%} of the training labels are wrong (label noise).", share=noise)
    smoothing = training.label_smoothing
    if falls and _highest(smoothing, "training.label_smoothing", curves, between):
        yield N_("Only the training loss includes label smoothing.")


def _highest(first_value: float, setting: str, curves: Curves, between: tuple[int, int]) -> float:
    """Return the highest value that a setting had between two steps."""
    first, last = between
    turns = [(turn.step, turn.value) for turn in curves.turns if turn.setting == setting]
    before = [value for step, value in turns if step <= first]
    within = [value for step, value in turns if first < step <= last]
    return max([before[-1] if before else first_value, *within])


def _means(values: Floats, rows: npt.NDArray[np.intp], window: int) -> Floats:
    """Return the mean of the last ``window`` values before each row; NaN where none is known."""
    return np.array([_mean(values[max(0, row - window) : row]) for row in rows], np.float64)


def _lags(values: Floats, rows: npt.NDArray[np.intp], window: int) -> Floats:
    """Return how much the mean of each window lies above its newer half."""
    halves = np.array(
        [_mean(values[max(0, row - (window + 1) // 2) : row]) for row in rows], np.float64
    )
    lags: Floats = _means(values, rows, window) - halves
    return lags


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _longest(better: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the start and the end of the longest stretch of True; the first of equal ones."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], better, [False]]).astype(np.int8)))
    stretches = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    return max(stretches, key=lambda ends: ends[1] - ends[0], default=(0, 0))
