"""Optimisers that PyTorch has: Adam, AdamW, and SGD with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.optimisers.record import Optimiser, UpdateLine


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


ADAM = Optimiser(
    name="adam",
    label=N_("Adam"),
    help=N_("The original paper's optimiser."),
    source="Kingma & Ba 2015, Algorithm 1",
    torch_class="torch.optim:Adam",
    settings=("beta1", "beta2"),
    options=lambda training: {"betas": (training.beta1, training.beta2), "fused": True},
    arithmetic=(adam,),
    memory={"exp_avg": "m", "exp_avg_sq": "v"},
    memory_words=N_("Adam's moments"),
    others=None,
    usual_rate=4e-3,
    decay=0.0,
    decay_is_coupled=True,
    decay_words=Paragraph("variants/adam-decay"),
    is_scale_free=True,
)


def adamw(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of AdamW (Loshchilov & Hutter 2019, Algorithm 2)."""
    pull = options["lr"] * options["weight_decay"] * weight
    lines, after = adam(weight, gradient, memory, {**options, "weight_decay": 0.0})
    return [UpdateLine("decay", "lr · weight decay · w", pull), *lines[1:]], after - pull


ADAMW = replace(
    ADAM,
    name="adamw",
    label=N_("AdamW"),
    help=N_("Adam with separate weight decay: the usual choice."),
    source="Loshchilov & Hutter 2019, Algorithm 2",
    torch_class="torch.optim:AdamW",
    arithmetic=(adamw, adam),
    decay=0.05,
    decay_is_coupled=False,
    decay_words=N_("Each step shrinks a matrix by learning rate × weight decay of itself."),
)


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


SGD = Optimiser(
    name="sgd",
    label=N_("SGD"),
    help=N_("Gradient descent with momentum; slow for Transformers."),
    source="Sutskever et al. 2013",
    torch_class="torch.optim:SGD",
    settings=("beta1",),
    options=lambda training: {"momentum": training.beta1, "fused": True},
    arithmetic=(sgd,),
    memory={"momentum_buffer": "momentum"},
    memory_words=N_("the momentum of SGD"),
    others=None,
    usual_rate=0.1,  # its steps are as long as the gradients
    decay=0.0,
    decay_is_coupled=True,
    decay_words=Paragraph("variants/sgd-decay"),
    is_scale_free=False,
)
