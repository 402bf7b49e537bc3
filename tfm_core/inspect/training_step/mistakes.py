"""Famous mistakes, made on purpose on the user's model, and what they do in numbers, by name."""

from __future__ import annotations

import math
from typing import Any

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


def argmax_before_loss(trainer: Trainer) -> dict[str, Any]:
    """Count wrong answers, and try to learn from the count.

    share: wrong; grad_fn: what the count is to autograd; error: its answer when asked for a
    gradient.
    """
    call = _call(trainer)
    predicted = call.logits.argmax(-1)
    counts = call.targets != call.ignore_index
    wrong = (predicted != call.targets)[counts].float().mean()
    try:
        wrong.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        return {"share": float(wrong), "grad_fn": str(wrong.grad_fn), "error": str(error)}
    raise AssertionError("argmax has no gradient")


def argmax_made_to_require_grad(trainer: Trainer) -> dict[str, Any]:
    """Take a whole step on ``argmax().float().requires_grad_()``: no error, and nothing learned.

    The new leaf is all that the backward pass reaches. n: weights of all that got a gradient;
    change: the largest of any weight. answers: those that count, which cross-entropy takes for the
    logits of as many classes.
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
    return {
        "loss": float(loss.detach()),
        "answers": int(counts.sum()),
        "all": len(after),
        "n": sum(one.grad is not None for one in after.values()),
        "change": max(
            float((one.detach() - before[name]).abs().max()) for name, one in after.items()
        ),
    }


def forgotten_zero_grad(trainer: Trainer) -> dict[str, float]:
    """Go backward twice without emptying the gradients between.

    once, twice: norms of the gradient after one and two passes; d: how far from exactly twice.
    """
    copy = copied(trainer)
    _loss, once = gradients(copy)
    for _ in range(2):
        forward(copy).loss.backward()  # type: ignore[no-untyped-call]
    twice = {name: one.grad for name, one in copy.model.named_parameters() if one.grad is not None}
    apart = max(float((twice[name] - 2 * once[name]).abs().max()) for name in twice)
    return {"once": _norm(list(once.values())), "twice": _norm(list(twice.values())), "d": apart}


def softmax_before_loss(trainer: Trainer) -> dict[str, Any]:
    """Give cross-entropy probabilities, which it takes for logits.

    right, wrong: losses with logits and with probabilities, and the norms of their gradients.
    floor: the lowest loss that probabilities of n classes can reach, as they lie from 0 to 1.
    """
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
    (right, wrong), (right_norm, wrong_norm) = losses, norms
    return {
        "right": right,
        "wrong": wrong,
        "right_norm": right_norm,
        "wrong_norm": wrong_norm,
        "floor": math.log(math.e + classes - 1) - 1,
        "n": classes,
    }


def forgotten_eval(trainer: Trainer) -> tuple[dict[str, float], bool]:
    """Predict the same batch twice with dropout on, and twice with it off.

    share: of dropout; noisy, quiet: the largest difference of a logit. And whether the dropout was
    borrowed.
    """
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
    found = {"share": share or BORROWED_DROPOUT, "noisy": noisy, "quiet": _apart(copy)}
    return found, is_borrowed


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
