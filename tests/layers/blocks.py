"""Blocks from plain sizes, for tests."""

from functools import partial

from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block
from tfm_core.layers.feed_forward import FeedForward, make_norm


def make_block(
    d_model,
    n_heads,
    d_ff,
    *,
    has_cross=False,
    norm="layernorm",
    eps=1e-5,
    norm_first=False,
    activation="relu",
):
    """A healthy block without dropout, as the paper's unless said."""
    self_attention = MultiHeadAttention(d_model, n_heads)
    cross_attention = MultiHeadAttention(d_model, n_heads) if has_cross else None
    return Block(
        self_attention,
        FeedForward(d_model, d_ff, activation=activation),
        partial(make_norm, norm, d_model, eps),
        cross_attention=cross_attention,
        norm_first=norm_first,
    )
