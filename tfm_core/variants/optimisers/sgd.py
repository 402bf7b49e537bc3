"""SGD with momentum: downhill, with inertia."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.optimisers.record import Optimiser, UpdateLine


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
    help=N_("Gradient descent with momentum; Transformers learn slowly with it."),
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
