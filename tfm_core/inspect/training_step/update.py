"""The optimiser's own arithmetic of one weight, of a whole parameter, and of a step in two ways.

The same step is taken twice: with ``nn.Module`` and its optimiser, and with functions on raw
tensors.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.func import functional_call

from tfm_core.choices.variants.optimisers import OPTIMISERS, Optimiser
from tfm_core.inspect.training_step.arithmetic import ARITHMETIC, ITERATED, UpdateLine
from tfm_core.inspect.training_step.step import StepTaken, chance, clip_scale, copied, rows
from tfm_core.sentences import N_
from tfm_core.training.loop import Trainer


def one_weight(
    taken: StepTaken, name: str, index: tuple[int, ...], optimiser: Optimiser
) -> tuple[list[UpdateLine], float, float]:
    """Return the lines for one weight, its value by hand, and the optimiser's.

    The arithmetic by hand is in double precision.
    """
    lines = _lines(taken, name, optimiser)
    numbers = [replace(line, value=_number(line.value, index)) for line in lines]
    return numbers, numbers[-1].value, float(taken.after[name][index])


def singular_values(
    taken: StepTaken, name: str, index: tuple[int, ...], optimiser: Optimiser
) -> Tensor | None:
    """Return (iterations + 1, n): the singular values of the matrix that is made orthogonal.

    Of the one in which a weight stands; before the first iteration and after each. None where the
    optimiser makes none orthogonal.
    """
    found = [line.value for line in _lines(taken, name, optimiser) if line.name == ITERATED]
    return torch.linalg.svdvals(torch.stack([x[index[:-2]] for x in found])) if found else None


def _lines(taken: StepTaken, name: str, optimiser: Optimiser) -> list[UpdateLine]:
    """Return the lines of a whole parameter."""
    options = {**taken.options[name], "lr": taken.rate}
    mover = optimiser.mover(options)
    weight, raw = (one[name].double() for one in (taken.before, taken.gradients))
    gradient = raw * taken.scale
    memory = {key: value.double() for key, value in taken.state_before[name].items()}
    lines = [UpdateLine("w", N_("before"), weight), UpdateLine("g", N_("gradient"), raw)]
    if taken.scale != 1.0:
        lines.append(UpdateLine("g", N_("clipped: · {scale:.4g}", scale=taken.scale), gradient))
    lines += [
        UpdateLine(shown, N_("before"), memory.get(key, 0.0)) for key, shown in mover.memory.items()
    ]
    more, after = ARITHMETIC[mover.name][0](weight, gradient, memory, options)
    return [*lines, *more, UpdateLine("w", N_("after"), after)]


def _number(value: Tensor | float, index: tuple[int, ...]) -> float:
    """Return the number of one weight, or the one that a matrix has in all."""
    if not isinstance(value, Tensor):
        return value
    places = zip(index, value.shape, strict=False)
    return float(value[tuple(at if size > 1 else 0 for at, size in places)])


def whole(taken: StepTaken, name: str, gradient: Tensor, optimiser: Optimiser) -> Tensor:
    """Return a whole parameter after the step, by the same lines on its tensors."""
    memory, options = taken.state_before[name], {**taken.options[name], "lr": taken.rate}
    update = ARITHMETIC[optimiser.mover(options).name][0]
    after: Tensor = update(taken.before[name], gradient, memory, options)[1]
    return after


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
    nn.utils.clip_grad_norm_(trainer.parameters, trainer.experiment.trained.clip_norm or torch.inf)
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
    _norm, scale = clip_scale(by_name, trainer.experiment.trained.clip_norm)
    optimiser = OPTIMISERS[trainer.experiment.trained.optimizer]
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
