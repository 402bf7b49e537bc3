"""Adam: a running mean of the gradient, divided by the root of one of its square."""

from __future__ import annotations

from collections.abc import Mapping
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
