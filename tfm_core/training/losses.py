"""Cross-entropy, and the lowest that it can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tfm_core.choices.mistakes import MISTAKES

NO_TARGET = -100
"""The target that PyTorch ignores by default."""


@dataclass(frozen=True, slots=True, eq=False)
class LossCall:
    """A cross-entropy and what it was computed from: logits (N, classes) and targets (N,).

    given: what stood in the place of the logits, by mistake. ignored: the target that does not
    count. smoothing: of labels.
    """

    loss: Tensor
    logits: Tensor
    given: Tensor
    targets: Tensor
    ignored: int
    smoothing: float


_calls: ContextVar[list[LossCall] | None] = ContextVar("calls", default=None)


@contextmanager
def loss_calls() -> Iterator[list[LossCall]]:
    """Collect the cross-entropies within the context, whichever objective computes them."""
    calls: list[LossCall] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    *,
    mistakes: tuple[str, ...],
    smoothing: float = 0.0,
    ignored: int = NO_TARGET,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross-entropy of logits (N, classes) and targets (N,), in nats.

    mistakes: those of training, by name. ignored: the target that does not count.
    """
    change, logits = _loss_input(mistakes), logits.float()
    given = logits if change is None else change(logits)
    loss = nn.functional.cross_entropy(
        given, targets, ignore_index=ignored, label_smoothing=smoothing, reduction=reduction
    )
    # while torch compiles, reading a ContextVar would cut the traced graph in two
    if not torch.compiler.is_compiling() and (calls := _calls.get()) is not None:
        calls.append(LossCall(loss, logits, given, targets, ignored, smoothing))
    return loss


def _loss_input(mistakes: tuple[str, ...]) -> Callable[[Tensor], Tensor] | None:
    """Return what mistakes make of the logits before the loss; None where nothing."""
    return next((MISTAKES[name].loss_input for name in mistakes if MISTAKES[name].loss_input), None)


def labels_of(ids: Tensor, mistakes: tuple[str, ...]) -> Tensor:
    """Return the tokens (B, T) of ids (B, T + 1) that are to be predicted from the first T."""
    change = _labels(mistakes)
    return ids[:, 1:] if change is None else change(ids)


def predicts_others(mistakes: tuple[str, ...]) -> bool:
    """Return whether mistakes ask for other tokens than the next ones."""
    return _labels(mistakes) is not None


def _labels(mistakes: tuple[str, ...]) -> Callable[[Tensor], Tensor] | None:
    return next((MISTAKES[name].labels for name in mistakes if MISTAKES[name].labels), None)


def lowest_loss(smoothing: float, n_classes: int, mistakes: tuple[str, ...]) -> float:
    """Return the lowest loss where targets are certain, but for their smoothing.

    The best prediction of a smoothed target is that target, and its loss the entropy.
    """
    floor = input_floor(smoothing, n_classes, mistakes)
    if floor is not None:
        return floor
    share = smoothing / n_classes
    top = 1.0 - smoothing + share
    if not share:
        return 0.0
    return -top * math.log(top) - (n_classes - 1) * share * math.log(share)


def input_floor(smoothing: float, n_classes: int, mistakes: tuple[str, ...]) -> float | None:
    """Return what the input of the loss alone keeps it above; None for logits, which may be any.

    Probabilities that are taken for logits reach from 0 to 1, so that even a certain and right
    prediction leaves ln(e + classes - 1) - 1. With smoothing the loss is minimised over the
    probability of the target, the others sharing the rest evenly: it is convex in it, and its
    slope is 0 where the softmax of the two differs by 1 - smoothing.
    """
    if _loss_input(mistakes) is None:
        return None
    others = n_classes - 1
    top = 1.0
    if smoothing and others:
        gap = math.log((1 + others * (1 - smoothing)) / smoothing)
        top = min(1.0, (1 + others * gap) / n_classes)
    rest = (1 - top) / others if others else 0.0
    share = smoothing / n_classes
    log_sum = math.log(math.exp(top) + others * math.exp(rest))
    return log_sum - (1 - smoothing + share) * top - others * share * rest
