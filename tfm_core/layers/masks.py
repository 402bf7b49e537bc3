"""Masks: which query may attend to which key.

Every mask is bool, ``True`` = may attend, broadcastable to ``(B, H, Q, K)``; two masks are combined
with ``&``. (``nn.MultiheadAttention`` means the opposite with its bool masks.)
"""

from __future__ import annotations

import torch
from torch import Tensor


def is_token(ids: Tensor, pad_id: int | None) -> Tensor:
    """Return ``(B, K)``: True for a token; everywhere if there is no padding token (None)."""
    return torch.ones_like(ids, dtype=torch.bool) if pad_id is None else ids != pad_id


def check_source(src: Tensor) -> None:
    """Raise ValueError for an empty source (B, S), S = 0."""
    if not src.size(1):
        raise ValueError("The source is empty, but this model must read at least one token.")


def padding_mask(ids: Tensor, pad_id: int | None) -> Tensor:
    """Return ``(B, 1, 1, K)``: every query may attend to every key that is not padding.

    ids: (B, K) token ids; pad_id: None where no token is for padding.
    """
    return is_token(ids, pad_id)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return ``(length, length)``: a query sees itself and the keys before it."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def window_mask(length: int, window: int, device: torch.device | None = None) -> Tensor:
    """Return ``(length, length)``: a query sees keys at most ``window`` tokens away.

    Sliding-window attention, Longformer (Beltagy et al. 2020), section 3.1.
    """
    positions = torch.arange(length, device=device)
    return (positions[:, None] - positions[None, :]).abs() <= window


def within(mask: Tensor, length: int, window: int) -> Tensor:
    """Narrow a self-attention mask to a sliding window; 0 leaves it as it is."""
    return mask & window_mask(length, window, mask.device) if window else mask


def prefix_mask(length: int, prefix: int, device: torch.device | None = None) -> Tensor:
    """Return ``(length, length)``: causal, but everybody sees all of the first ``prefix`` keys.

    Prefix language model, T5 (Raffel et al. 2020), figure 3: the question is read both ways.
    """
    positions = torch.arange(length, device=device)
    return causal_mask(length, device) | (positions < prefix)[None, :]


def packed_mask(segments: Tensor) -> Tensor:
    """Return ``(B, 1, T, T)``: a query sees the keys of its own sequence only.

    segments: (B, T), the number of the sequence that each token belongs to, where several are
    packed into one row to save padding (Krell et al. 2021). Block-diagonal when they are in order.
    """
    return segments[:, None, :, None] == segments[:, None, None, :]
