"""One step of one weight, and of a whole parameter, by the optimiser's own arithmetic."""

from __future__ import annotations

from torch import Tensor

from tfm_core.inspect.training_step.step import Taken
from tfm_core.variants.optimisers import Optimiser, UpdateLine


def one_weight(
    taken: Taken, name: str, index: tuple[int, ...], optimiser: Optimiser
) -> tuple[list[UpdateLine], float, float]:
    """Return the lines for one weight, its value by hand, and the optimiser's.

    The arithmetic by hand is in double precision.
    """
    weight, raw = (float(one[name][index]) for one in (taken.before, taken.gradients))
    gradient = raw * taken.scale
    lines = [UpdateLine("w", "before", weight), UpdateLine("g", "gradient", raw)]
    if taken.scale != 1.0:
        lines.append(UpdateLine("g", f"clipped: · {taken.scale:.4g}", gradient))
    memory = {
        key: float(value[index] if value.dim() else value)
        for key, value in taken.state_before[name].items()
    }
    lines += [
        UpdateLine(shown, "before", memory.get(key, 0.0)) for key, shown in optimiser.memory.items()
    ]
    options = {**taken.options[name], "lr": taken.rate}
    more, after = optimiser.update(weight, gradient, memory, options)
    return [*lines, *more, UpdateLine("w", "after", after)], after, float(taken.after[name][index])


def whole(taken: Taken, name: str, gradient: Tensor, optimiser: Optimiser) -> Tensor:
    """Return a whole parameter after the step, by the same lines on its tensors."""
    memory, options = taken.state_before[name], {**taken.options[name], "lr": taken.rate}
    after: Tensor = optimiser.update(taken.before[name], gradient, memory, options)[1]
    return after
