"""AdamW: Adam, with weight decay beside the gradient and not in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tfm_core.sentences import N_
from tfm_core.variants.optimisers.adam import ADAM, adam
from tfm_core.variants.optimisers.record import UpdateLine


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
    help=N_("Adam with decoupled weight decay: the usual choice."),
    source="Loshchilov & Hutter 2019, Algorithm 2",
    torch_class="torch.optim:AdamW",
    arithmetic=(adamw, adam),
    decay=0.05,
    decay_is_coupled=False,
    decay_words=N_("Each step shrinks a matrix by learning rate × weight decay of itself."),
)
