"""One step of one weight, and of a whole parameter, by the optimiser's own arithmetic."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tfm_core.inspect.training_step.step import StepTaken
from tfm_core.sentences import N_
from tfm_core.variants.optimisers import ITERATED, Optimiser, UpdateLine


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
    more, after = mover.update(weight, gradient, memory, options)
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
    update = optimiser.mover(options).update
    after: Tensor = update(taken.before[name], gradient, memory, options)[1]
    return after
