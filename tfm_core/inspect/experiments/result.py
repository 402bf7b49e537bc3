"""What one run of an experiment that teaches showed, in plain numbers, read from its folder."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.config import Experiment
from tfm_core.inspect.compare.curves import figures
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.data.text_data import TextData

WRITTEN = 200
"""Unseen examples that a model answers by itself."""
_LAST_STEPS = 20


@dataclass(frozen=True, slots=True)
class Written:
    """What a model writes by itself, token after token: the share right of n unseen examples.

    tokens: the mean share of tokens that are right in any order, of the longer of answer and truth.
    """

    share: float
    n: int
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """One run that is over.

    label: as sentences call it. accuracy: of tokens, wholes: of whole sequences, each read from the
    true tokens before it; tested, or where it was not, validated on n_unseen examples at the last.
    loss: on these, never smoothed; training_loss: mean of the last steps. confidence: mean of the
    probabilities of its answers to the examples that it kept. validations: (step, accuracy),
    ascending. largest_gradient: its norm, before clipping. guessing: ln(classes). diverged: why it
    has no end, in a sentence. written: what it answers by itself; sharpness: mean over heads and
    rows of self-attention of the largest weight before the first update. None: not known.
    """

    label: str
    accuracy: float | None = None
    wholes: float | None = None
    n_unseen: int = 0
    loss: float | None = None
    training_loss: float | None = None
    confidence: float | None = None
    validations: tuple[tuple[int, float], ...] = ()
    largest_gradient: float | None = None
    guessing: float | None = None
    diverged: str | None = None
    written: Written | None = None
    sharpness: float | None = None

    @property
    def right(self) -> float | None:
        """The share that runs are told apart by: of whole sequences where they are counted."""
        return self.accuracy if self.wholes is None else self.wholes

    def first_step(self, share: float) -> int | None:
        """Return the first validation at which so large a share of tokens was right, or None."""
        return next((step for step, right in self.validations if step and right >= share), None)


def read(
    run: Run, label: str, *, writes_freely: bool = False, looks_sharply: bool = False
) -> Result:
    """Return what a run that is over showed.

    writes_freely, looks_sharply: whether ``written`` and ``sharpness`` are measured too. What the
    folder lost is None.
    """
    curves, experiment = run.thinned_curves(), run.experiment
    found, outcome = figures(curves), run.outcome
    is_tested = found.test_accuracy is not None
    n_unseen = getattr(experiment.task, "n_test" if is_tested else "n_validation", 0)
    seen = curves.unseen
    return Result(
        label,
        accuracy=found.test_accuracy if is_tested else found.accuracy,
        wholes=found.test_sequences if is_tested else found.sequences,
        n_unseen=n_unseen,
        loss=found.test_loss if is_tested else found.loss,
        training_loss=_training_loss(curves),
        confidence=_confidence(run),
        validations=tuple(
            (int(step), float(right))
            for step, right in zip(seen["step"], seen["accuracy"], strict=True)
            if math.isfinite(right)
        ),
        largest_gradient=_largest_gradient(curves),
        guessing=curves.started.get("start_loss"),
        diverged=outcome.sentence if outcome is not None and outcome.kind == "diverged" else None,
        written=_written(run) if writes_freely else None,
        sharpness=_sharpness(run) if looks_sharply else None,
    )


def _training_loss(curves: Curves) -> float | None:
    last = curves.steps["loss"][-_LAST_STEPS:].astype(np.float64)
    return float(last.mean()) if len(last) and np.isfinite(last).all() else None


def _largest_gradient(curves: Curves) -> float | None:
    norms = curves.steps["grad_norm"].astype(np.float64)
    known = norms[np.isfinite(norms)]
    return float(known.max()) if len(known) else None


def _confidence(run: Run) -> float | None:
    """Return how sure the last snapshot's answers are; padding behind an answer does not count."""
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
    try:
        probe, snapshot = run.probe(), run.snapshot(0)
        largest = [
            row
            for index, item in enumerate(probe.attended)
            for module in _self_attention(run.experiment)
            for row in _largest(snapshot.attention[module][index], run.experiment, item, module)
        ]
    except (ValueError, KeyError, IndexError):
        return None
    return float(np.mean(largest)) if largest else None


def _self_attention(experiment: Experiment) -> list[str]:
    known = modules_by_kind(experiment)
    return list(known.get("encoder") or next(iter(known.values()), []))


def _largest(
    weights: np.ndarray, experiment: Experiment, item: dict[str, object], module: str
) -> list[float]:
    """Return the largest weight of each row of one example's maps (H, Q, K), padding cut off."""
    n_queries, n_keys = axes(experiment, item, module).shape
    return [float(one) for one in weights[:, :n_queries, :n_keys].max(-1).ravel()]


def _written(run: Run) -> Written | None:
    """Let the last weights answer unseen examples by themselves, greedily."""
    import torch

    from tfm_core.data.load import data_as
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
    return Written(right / n, n, sum(in_any_order(*pair) for pair in pairs) / n)


def in_any_order(answer: Sequence[str], truth: Sequence[str]) -> float:
    """Return the share of tokens that two sequences have in common, whatever their order."""
    shared = (Counter(answer) & Counter(truth)).total()
    return shared / max(len(answer), len(truth), 1)
