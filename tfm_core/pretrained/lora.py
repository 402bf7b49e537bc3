"""LoRA: changes of low rank to the matrices of a frozen model (Hu et al. 2022).

A matrix W becomes W + alpha / r * B A, with A (r, d_in) and B (d_out, r). It is a parametrization
of the layer's weight, so that every way through the layer meets it. Queries and values of an
attention change (section 4.2), each with its own A and B; of GPT-2, whose queries, keys and values
are one matrix, the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.models.build import Model

_CHANGED = "parametrizations"
"""What PyTorch keeps a layer's matrix and what changes it in."""


class LowRank(nn.Module):
    """What a matrix is changed by. It starts as nothing: B is zeros."""

    def __init__(
        self, rows: Mapping[int, slice], n_rows: int, d_in: int, *, rank: int, alpha: float
    ) -> None:
        """rows: of the matrix, by the number of the part that has an A and a B."""
        super().__init__()
        self.rows, self.n_rows, self.scale = dict(rows), n_rows, alpha / rank
        self.a, self.b = nn.ParameterDict(), nn.ParameterDict()
        for part, where in rows.items():
            first = torch.empty(rank, d_in)
            nn.init.kaiming_uniform_(first, a=math.sqrt(5))  # as PEFT's start
            self.a[str(part)] = nn.Parameter(first)
            self.b[str(part)] = nn.Parameter(torch.zeros(where.stop - where.start, rank))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the changed matrix (d_out, d_in)."""
        changes = []
        at = 0
        for part, where in sorted(self.rows.items()):
            changes.append(weight.new_zeros(where.start - at, weight.size(1)))
            changes.append(self.scale * (self.b[str(part)] @ self.a[str(part)]))
            at = where.stop
        changes.append(weight.new_zeros(self.n_rows - at, weight.size(1)))
        return weight + torch.cat(changes)


def add_lora(model: Model, *, rank: int, alpha: float, is_one_matrix: bool) -> None:
    """Freeze a model and add LoRA's matrices to its attentions.

    is_one_matrix: whether queries, keys and values change as one.
    """
    model.requires_grad_(False)
    for attention in model.modules():
        if not isinstance(attention, MultiHeadAttention):
            continue
        layer, (d_q, d_k, d_v) = attention.in_projection, attention.widths
        n_rows = d_q + d_k + d_v
        rows = {0: slice(0, d_q), 2: slice(d_q + d_k, n_rows)}
        if is_one_matrix:
            rows = {0: slice(0, n_rows)}
        change = LowRank(rows, n_rows, layer.in_features, rank=rank, alpha=alpha)
        parametrize.register_parametrization(layer, "weight", change.to(layer.weight))


def merge_lora(model: nn.Module) -> None:
    """Write the changes into the matrices; the model is one without LoRA again."""
    for module in list(model.modules()):
        if isinstance(module, nn.Linear) and parametrize.is_parametrized(module, "weight"):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model as one without LoRA has it, its changes in the matrices."""
    state: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        layer, is_changed, leaf = name.partition(f".{_CHANGED}.")
        if not is_changed:
            state[name] = value
        elif leaf.endswith(".original"):
            changed: Any = model.get_submodule(layer)
            state[f"{layer}.weight"] = changed.weight.detach()
    return state
