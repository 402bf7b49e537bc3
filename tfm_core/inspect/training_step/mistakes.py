"""Famous mistakes, made on purpose on the user's model, and what they do in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.inspect.training_step.step import (
    LossCall,
    chance,
    copied,
    forward,
    gradients,
    outputs_of,
    rows,
)
from tfm_core.sentences import StudentError
from tfm_core.training.loop import Trainer

BORROWED_DROPOUT = 0.1
"""Dropout that a model without any gets on its copy, so that there is something to see."""


@dataclass(frozen=True, slots=True)
class Argmax:
    """What a count of wrong answers is to autograd, and its answer when asked for a gradient."""

    wrong_share: float
    grad_fn: str
    requires_grad: bool
    error: str


@dataclass(frozen=True, slots=True)
class SilentArgmax:
    """What a step on counted answers does when the count is told to require a gradient.

    n_gradients: weights of n_weights that got one; change: the largest change of any weight.
    n_answers: the counted answers, which cross-entropy takes for the logits of as many classes.
    """

    loss: float
    n_answers: int
    n_weights: int
    n_gradients: int
    change: float


@dataclass(frozen=True, slots=True)
class SummedGradients:
    """Norms of the gradient after one and after two backward passes; how far from exactly twice."""

    once: float
    twice: float
    difference_from_double: float


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """Losses and gradient norms with logits and with probabilities given to cross-entropy.

    floor: the lowest loss that probabilities can reach, as they lie between 0 and 1.
    """

    right_loss: float
    wrong_loss: float
    right_norm: float
    wrong_norm: float
    floor: float
    n_classes: int


@dataclass(frozen=True, slots=True)
class DropoutNoise:
    """How far two predictions for the same batch lie apart in both modes (largest logit)."""

    dropout: float
    is_borrowed: bool
    in_training: float
    in_eval: float


def argmax_before_loss(trainer: Trainer) -> Argmax:
    """Count wrong answers, and try to learn from the count."""
    call = _call(trainer)
    predicted = call.logits.argmax(-1)
    counts = call.targets != call.ignore_index
    wrong = (predicted != call.targets)[counts].float().mean()
    try:
        wrong.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        return Argmax(float(wrong), str(wrong.grad_fn), wrong.requires_grad, str(error))
    raise AssertionError("argmax has no gradient")


def argmax_made_to_require_grad(trainer: Trainer) -> SilentArgmax:
    """Take a whole step on ``argmax().float().requires_grad_()``: no error, and nothing learned.

    The new leaf is all that the backward pass reaches.
    """
    copy = copied(trainer)
    copy.model.zero_grad(set_to_none=True)
    before = {name: one.detach().clone() for name, one in copy.model.named_parameters()}
    call = _call(copy)
    counts = call.targets != call.ignore_index
    predicted = call.logits.argmax(-1).float().requires_grad_()
    loss = F.cross_entropy(predicted[counts], call.targets[counts].float())
    loss.backward()  # type: ignore[no-untyped-call]
    copy.optimizer.step()
    after = dict(copy.model.named_parameters())
    return SilentArgmax(
        float(loss.detach()),
        int(counts.sum()),
        len(after),
        sum(one.grad is not None for one in after.values()),
        max(float((one.detach() - before[name]).abs().max()) for name, one in after.items()),
    )


def forgotten_zero_grad(trainer: Trainer) -> SummedGradients:
    """Go backward twice without emptying the gradients between."""
    copy = copied(trainer)
    _loss, once = gradients(copy)
    for _ in range(2):
        forward(copy).loss.backward()  # type: ignore[no-untyped-call]
    twice = {name: one.grad for name, one in copy.model.named_parameters() if one.grad is not None}
    apart = max(float((twice[name] - 2 * once[name]).abs().max()) for name in twice)
    return SummedGradients(_norm(list(once.values())), _norm(list(twice.values())), apart)


def softmax_before_loss(trainer: Trainer) -> SoftmaxLoss:
    """Give cross-entropy probabilities, which it takes for logits."""
    copy = copied(trainer)
    norms, losses = [], []
    for is_wrong in (False, True):
        copy.model.zero_grad(set_to_none=True)
        call = _call(copy)
        given = call.logits.softmax(-1) if is_wrong else call.logits
        loss = F.cross_entropy(given, call.targets, ignore_index=call.ignore_index)
        loss.backward()  # type: ignore[no-untyped-call]
        gradients = [one.grad for one in copy.model.parameters() if one.grad is not None]
        norms.append(_norm(gradients))
        losses.append(float(loss.detach()))
    classes = call.logits.size(-1)
    floor = math.log(math.e + classes - 1) - 1
    return SoftmaxLoss(losses[0], losses[1], norms[0], norms[1], floor, classes)


def forgotten_eval(trainer: Trainer) -> DropoutNoise:
    """Predict the same batch twice with dropout on, and twice with it off."""
    copy = copied(trainer)
    share = max((m.p for m in copy.model.modules() if isinstance(m, nn.Dropout)), default=0.0)
    is_borrowed = share == 0
    if is_borrowed:
        for module in copy.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = BORROWED_DROPOUT
    copy.model.train()
    noisy = _apart(copy)
    copy.model.eval()
    return DropoutNoise(share or BORROWED_DROPOUT, is_borrowed, noisy, _apart(copy))


@torch.no_grad()
def _apart(trainer: Trainer) -> float:
    """Return the largest difference of the model's outputs for two seeds of dropout."""
    with outputs_of(trainer.model) as outputs:
        for seed in (1, 2):
            with chance(trainer) as generator, torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                trainer.objective.loss_and_metrics(trainer.model, rows(trainer), generator)
    return float((outputs[0] - outputs[-1]).abs().max())


def _call(trainer: Trainer) -> LossCall:
    call = forward(trainer).call
    if call is None:
        raise StudentError("This mistake needs cross-entropy, which is not this model's loss.")
    return call


def _norm(gradients: list[Tensor]) -> float:
    return float(torch.linalg.vector_norm(torch.stack([one.norm() for one in gradients])))
