"""Muon: a matrix moves along its momentum made orthogonal, all directions equally far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.optimisers.pytorch import ADAMW
from tfm_core.variants.optimisers.record import Optimiser, UpdateLine

COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
"""Of the quintic: steep at 0, so that small singular values grow quickest (Jordan et al. 2024)."""

ITERATIONS: Final = 5
"""They bring singular values from 0.002 on to between 0.7 and 1.2, which does as well as 1."""

ITERATED: Final = "X"
"""The name of what the iteration changes, in the lines of the arithmetic."""

RMS: Final = 0.2
"""Root mean square of a matrix's update over the learning rate: about AdamW's (Liu et al. 2025)."""


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


MUON = Optimiser(
    name="muon",
    label=N_("Muon"),
    help=Paragraph("variants/muon"),
    source="Jordan et al. 2024; Liu et al. 2025",
    torch_class="tfm_core.training.muon:Muon",
    settings=("beta1", "beta2"),
    options=lambda training: {"betas": (training.beta1, training.beta2), "fused": True},
    arithmetic=(muon, *ADAMW.arithmetic),
    memory={"momentum_buffer": "M"},
    memory_words=N_("momentum of hidden matrices, AdamW's moments of the rest"),
    others=ADAMW,
    usual_rate=None,
    decay=ADAMW.decay,
    decay_is_coupled=False,
    decay_words=ADAMW.decay_words,
    is_scale_free=True,
)
