"""Norms: keep every token's vector in range. LayerNorm (Ba et al. 2016), RMSNorm (2019)."""

from __future__ import annotations

from torch import nn

from tfm_core.variants.norms import NORM_EPS, NORMS
from tfm_core.variants.record import resolve


def make_norm(name: str, d_model: int, eps: float = NORM_EPS) -> nn.Module:
    """Return a norm over the last axis of (B, T, d_model). Raises UnknownVariant."""
    norm: nn.Module = resolve(NORMS[name].layer)(d_model, eps=eps)
    return norm
