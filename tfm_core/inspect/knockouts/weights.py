"""Attention weights replaced inside a block: by even ones, or by a pattern.

The attention is computed step by step there, and a capture records the replaced weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from tfm_core.layers.attention import MultiHeadAttention

Change = Callable[[Tensor, Tensor | None], Tensor]
"""From the weights (B, H, Q, K) of some heads, and the mask, to other weights."""

_NOTHING = object()


def even(weights: Tensor, mask: Tensor | None) -> Tensor:
    """Return weights (B, H, Q, K) that are alike for all keys that a query may attend to."""
    allowed = torch.ones_like(weights)
    if mask is not None:
        allowed = allowed.masked_fill(~mask.expand_as(weights), 0.0)
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1.0)


def pattern(rows: Tensor) -> Change:
    """Return what puts ``rows`` (Q, K) in place of the weights; later queries keep theirs."""

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        n_query, n_key = rows.shape
        changed = weights.clone()
        changed[..., :n_query, :] = 0.0
        changed[..., :n_query, :n_key] = rows.to(weights)
        return changed

    return change


@contextmanager
def weighed(attention: nn.Module, head: int | None, change: Change) -> Iterator[None]:
    """Replace the weights of a head of an attention, or of all, inside the block."""
    assert isinstance(attention, MultiHeadAttention)
    heads = slice(None) if head is None else slice(head, head + 1)
    usual = attention.weigh

    def weigh(masked: Tensor, mask: Tensor | None, sink: Tensor | None) -> Tensor:
        weights = usual(masked, mask, sink)
        few = None if mask is None else mask.expand_as(weights)[:, heads]
        changed = weights.clone()
        changed[:, heads] = change(weights[:, heads], few)
        return changed

    with ExitStack() as undo:
        undo.enter_context(replaced(attention, "weigh", weigh))
        undo.enter_context(replaced(attention, "attend", attention.attend_explicitly))
        yield


@contextmanager
def replaced(owner: nn.Module, name: str, function: Callable[..., object]) -> Iterator[None]:
    """Put a function before a method of one object."""
    before = vars(owner).get(name, _NOTHING)
    vars(owner)[name] = function
    try:
        yield
    finally:
        if before is _NOTHING:
            del vars(owner)[name]
        else:
            vars(owner)[name] = before
