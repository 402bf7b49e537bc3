"""Norms: keep every token's vector in range. LayerNorm (Ba et al. 2016), RMSNorm (2019)."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

NORM_EPS = 1e-5  # torch's own default
NORM_LAYERS: dict[str, Callable[..., nn.Module]] = {
    "layernorm": nn.LayerNorm,
    "rmsnorm": nn.RMSNorm,
}


def make_norm(name: str, d_model: int, eps: float = NORM_EPS) -> nn.Module:
    """Return a norm over the last axis of (B, T, d_model)."""
    return NORM_LAYERS[name](d_model, eps=eps)
