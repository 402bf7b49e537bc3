"""The optimisers' arithmetic, written so that it works on one number and on whole tensors alike.

Adam: Kingma & Ba 2015, Algorithm 1. AdamW: Loshchilov & Hutter 2019, Algorithm 2. SGD with
momentum as PyTorch writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tfm_core.inspect.training_step.step import Taken


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """One line of the arithmetic: a name, its formula, and the number."""

    name: str
    formula: str
    value: Any


def adam(
    weight: Any, gradient: Any, m: Any, v: Any, t: int, options: Mapping[str, Any], *, is_w: bool
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of Adam, or with ``is_w`` of AdamW.

    m, v: the memories before; t: the number of this step, from 1.
    """
    rate, (beta1, beta2) = options["lr"], options["betas"]
    decay, eps = options["weight_decay"], options["eps"]
    lines = []
    if is_w:
        pull = rate * decay * weight
        lines.append(UpdateLine("decay", "lr · weight decay · w", pull))
    else:
        pull = 0.0 * weight
        gradient = gradient + decay * weight
        lines.append(UpdateLine("g + decay", "g + weight decay · w", gradient))
    m_new = beta1 * m + (1 - beta1) * gradient
    v_new = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m_new / (1 - beta1**t)
    v_hat = v_new / (1 - beta2**t)
    step = rate * m_hat / (v_hat**0.5 + eps)
    lines += [
        UpdateLine("m", "β₁ · m + (1 - β₁) · g", m_new),
        UpdateLine("v", "β₂ · v + (1 - β₂) · g²", v_new),
        UpdateLine("m̂", f"m / (1 - β₁^{t})", m_hat),
        UpdateLine("v̂", f"v / (1 - β₂^{t})", v_hat),
        UpdateLine("update", "lr · m̂ / (√v̂ + ε)", step),
    ]
    return lines, weight - pull - step


def sgd(
    weight: Any, gradient: Any, buffer: Any | None, options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of SGD; ``buffer`` is None in the first step."""
    gradient = gradient + options["weight_decay"] * weight
    moved = gradient if buffer is None else options["momentum"] * buffer + gradient
    step = options["lr"] * moved
    lines = [
        UpdateLine("g + decay", "g + weight decay · w", gradient),
        UpdateLine("momentum", "β₁ · momentum + g", moved),
        UpdateLine("update", "lr · momentum", step),
    ]
    return lines, weight - step


def one_weight(
    taken: Taken, name: str, index: tuple[int, ...], kind: str
) -> tuple[list[UpdateLine], float, float]:
    """Return the lines for one weight, its value by hand, and the optimiser's.

    kind: ``adamw``, ``adam`` or ``sgd``. The arithmetic by hand is in double precision.
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
    options = {**taken.options[name], "lr": taken.rate}
    if kind == "sgd":
        more, after = sgd(weight, gradient, memory.get("momentum_buffer"), options)
    else:
        m, v, t = (memory.get(key, 0.0) for key in ("exp_avg", "exp_avg_sq", "step"))
        lines += [UpdateLine("m", "before", m), UpdateLine("v", "before", v)]
        more, after = adam(weight, gradient, m, v, int(t) + 1, options, is_w=kind == "adamw")
    return [*lines, *more, UpdateLine("w", "after", after)], after, float(taken.after[name][index])


def whole(taken: Taken, name: str, gradient: Tensor, kind: str) -> Tensor:
    """Return a whole parameter after the step, by the same lines on its tensors."""
    memory, options = taken.state_before[name], {**taken.options[name], "lr": taken.rate}
    weight = taken.before[name]
    if kind == "sgd":
        after: Tensor = sgd(weight, gradient, memory.get("momentum_buffer"), options)[1]
        return after
    m, v = (memory.get(key, 0.0 * weight) for key in ("exp_avg", "exp_avg_sq"))
    t = int(memory["step"]) + 1 if "step" in memory else 1
    after = adam(weight, gradient, m, v, t, options, is_w=kind == "adamw")[1]
    return after
