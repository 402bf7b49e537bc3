"""The optimisers' updates in plain arithmetic, line by line; torch-free, so that pages may ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tfm_core.choices.variants.optimisers import COEFFICIENTS, ITERATIONS, RMS

ITERATED: Final = "X"
"""The name of what the iteration changes, in the lines of the arithmetic."""


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """One line of the arithmetic: a name, its formula, and the number."""

    name: str
    formula: str
    value: Any


Arithmetic = Callable[
    [Any, Any, Mapping[str, Any], Mapping[str, Any]], "tuple[list[UpdateLine], Any]"
]
"""From weight, gradient, memory and options to the lines and the new weight, of a whole tensor.
memory: what torch keeps under its own names, empty before the first step. options: lr, weight_decay
and what else torch's class takes, under its own names."""


def adam(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of Adam (Kingma & Ba 2015, Algorithm 1)."""
    beta1, beta2 = options["betas"]
    m, v = memory.get("exp_avg", 0.0), memory.get("exp_avg_sq", 0.0)
    t = int(memory.get("step", 0)) + 1
    gradient = gradient + options["weight_decay"] * weight
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    step = options["lr"] * m_hat / (v_hat**0.5 + options["eps"])
    lines = [
        UpdateLine("g + decay", "g + weight decay · w", gradient),
        UpdateLine("m", "β₁ · m + (1 - β₁) · g", m),
        UpdateLine("v", "β₂ · v + (1 - β₂) · g²", v),
        UpdateLine("m̂", f"m / (1 - β₁^{t})", m_hat),
        UpdateLine("v̂", f"v / (1 - β₂^{t})", v_hat),
        UpdateLine("update", "lr · m̂ / (√v̂ + ε)", step),
    ]
    return lines, weight - step


def adamw(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of AdamW (Loshchilov & Hutter 2019, Algorithm 2)."""
    pull = options["lr"] * options["weight_decay"] * weight
    lines, after = adam(weight, gradient, memory, {**options, "weight_decay": 0.0})
    return [UpdateLine("decay", "lr · weight decay · w", pull), *lines[1:]], after - pull


def sgd(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of SGD with momentum, as PyTorch writes it."""
    gradient = gradient + options["weight_decay"] * weight
    moved = options["momentum"] * memory.get("momentum_buffer", 0.0) + gradient
    step = options["lr"] * moved
    lines = [
        UpdateLine("g + decay", "g + weight decay · w", gradient),
        UpdateLine("momentum", "β₁ · momentum + g", moved),
        UpdateLine("update", "lr · momentum", step),
    ]
    return lines, weight - step


def muon(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weights of Muon; a matrix, or several in the last two axes."""
    beta, (a, b, c) = options["betas"][0], COEFFICIENTS
    momentum = beta * memory.get("momentum_buffer", 0.0) + (1 - beta) * gradient
    ahead = (1 - beta) * gradient + beta * momentum
    norm = (ahead * ahead).sum((-2, -1), keepdims=True) ** 0.5 + 1e-30
    x = ahead / norm
    pull = options["lr"] * options["weight_decay"] * weight
    lines = [
        UpdateLine("decay", "lr · weight decay · w", pull),
        UpdateLine("M", "β₁ · M + (1 - β₁) · g", momentum),
        UpdateLine("N", "(1 - β₁) · g + β₁ · M", ahead),
        UpdateLine("‖N‖", "√ of the sum of the squares of the whole matrix N", norm),
        UpdateLine(ITERATED, "N / ‖N‖", x),
    ]
    for _ in range(ITERATIONS):  # Newton-Schulz
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
        lines.append(UpdateLine(ITERATED, f"{a} · X - {-b} · XXᵀX + {c} · XXᵀXXᵀX", x))
    scale = RMS * max(weight.shape[-2:]) ** 0.5
    step = options["lr"] * scale * x
    lines.append(UpdateLine("update", f"lr · {RMS} · √{max(weight.shape[-2:])} · X", step))
    return lines, weight - pull - step


ARITHMETIC: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "adam": (adam,),
    "adamw": (adamw, adam),
    "sgd": (sgd,),
    "muon": (muon, adamw, adam),
}
"""The update of each optimiser, then the functions of ours which that calls, and those of
``others``."""
