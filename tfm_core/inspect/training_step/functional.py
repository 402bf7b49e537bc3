"""The same step twice: with ``nn.Module`` and its optimiser, and with functions on raw tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from tfm_core.inspect.training_step.step import StepTaken, chance, clip_scale, copied, rows
from tfm_core.inspect.training_step.update import whole
from tfm_core.training.loop import Trainer
from tfm_core.variants.optimisers import OPTIMISERS


class ModelWithLoss(nn.Module):
    """Model and loss as one function of a batch."""

    def __init__(self, trainer: Trainer) -> None:
        """Hold the trainer's model as ``model``."""
        super().__init__()
        self.model, self.objective = trainer.model, trainer.objective

    def forward(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """Return the mean loss of the examples ``batch`` (B,)."""
        return self.objective.loss_and_metrics(self.model, batch, generator).loss


def with_modules(trainer: Trainer, batch: Tensor, generator: torch.Generator) -> Tensor:
    """Weights live in the module; ``backward`` leaves gradients there for the optimiser."""
    trainer.optimizer.zero_grad(set_to_none=True)
    loss = trainer.objective.loss_and_metrics(trainer.model, batch, generator).loss
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(trainer.parameters, trainer.experiment.training.clip_norm or torch.inf)
    trainer.optimizer.step()
    return loss


def with_functions(
    trainer: Trainer, batch: Tensor, generator: torch.Generator
) -> tuple[Tensor, dict[str, Tensor]]:
    """Weights are plain tensors, handed in; ``autograd.grad`` returns what it finds."""
    weights = {
        f"model.{name}": one.detach().clone().requires_grad_()
        for name, one in trainer.model.named_parameters()
    }
    loss = functional_call(ModelWithLoss(trainer), weights, (batch, generator))
    in_order = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    gradients = {
        name.removeprefix("model."): torch.zeros_like(one) if gradient is None else gradient
        for (name, one), gradient in zip(weights.items(), in_order, strict=True)
    }
    return loss, gradients


def two_ways(trainer: Trainer, taken: StepTaken) -> dict[str, float]:
    """Take the step ``taken`` from ``trainer`` once more in both ways, and compare.

    one, other: the losses with modules and with functions; gradient, weight: the largest
    differences of gradients, after clipping, and of new weights.
    """
    copy = copied(trainer)
    for group in copy.optimizer.param_groups:
        group["lr"] = taken.rate
    with chance(trainer) as generator:
        module_loss = with_modules(copy, rows(trainer), generator)
    with chance(trainer) as generator:
        loss, by_name = with_functions(trainer, rows(trainer), generator)
    _norm, scale = clip_scale(by_name, trainer.experiment.training.clip_norm)
    optimiser = OPTIMISERS[trainer.experiment.training.optimizer]
    gradients, weights = [], []
    for name, moved in copy.model.named_parameters():
        clipped = by_name[name] * scale
        theirs = torch.zeros_like(moved) if moved.grad is None else moved.grad
        gradients.append(float((clipped - theirs).abs().max()))
        moved_here = whole(taken, name, clipped, optimiser)
        weights.append(float((moved_here - moved.detach()).abs().max()))
    return {
        "one": float(module_loss.detach()),
        "other": float(loss.detach()),
        "gradient": max(gradients),
        "weight": max(weights),
    }
