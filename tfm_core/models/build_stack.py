"""From a config to a stack of blocks, and to the positions of words: what the families share."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from tfm_core.choices.config import BlockConfig, TransformerConfig
from tfm_core.choices.mistakes import MISTAKES, make
from tfm_core.choices.variants.positions import NO_POSITIONS, POSITIONS, Position
from tfm_core.choices.variants.record import resolve
from tfm_core.layers.attention import draw_glorot
from tfm_core.layers.blocks import Block
from tfm_core.layers.experts import MixtureOfExperts
from tfm_core.layers.fast import MultiHeadAttention, Stack
from tfm_core.layers.feed_forward import FeedForward, make_norm
from tfm_core.layers.relative import Relative


def stack(
    config: TransformerConfig,
    n_layers: int,
    *,
    has_cross: bool = False,
    is_causal: bool = False,
) -> Stack:
    """Return ``n_layers`` equal blocks and the last norm, if the model has one.

    is_causal: whether its tokens are those that are written, each from those before it.
    """
    blocks = [_block(config, has_cross) for _ in range(n_layers)]
    final_norm = (
        make_norm(config.norm, config.d_model, config.norm_eps) if config.has_final_norm else None
    )
    windows = config.windows(n_layers)
    return Stack(blocks, final_norm, relative=_relative(config, is_causal), windows=windows)


def _block(config: BlockConfig, has_cross: bool) -> Block:
    self_attention = attention_of(config)
    cross_attention = attention_of(config) if has_cross else None
    return Block(
        self_attention,
        _feed_forward(config) if config.has_feed_forward else None,
        partial(make_norm, config.norm, config.d_model, config.norm_eps),
        cross_attention=cross_attention,
        norm_first=config.norm_first,
        dropout=config.dropout,
    )


def _feed_forward(config: BlockConfig) -> FeedForward | MixtureOfExperts:
    make = partial(
        FeedForward,
        config.d_model,
        config.d_ff,
        activation=config.activation,
        dropout=config.dropout,
        bias=config.bias,
    )
    if not config.has_experts:
        return make()
    return MixtureOfExperts(config.d_model, config.n_experts, make, top_k=config.top_k)


def attention_of(config: BlockConfig) -> MultiHeadAttention:
    """Return an attention of a block, or behind the blocks, with its first weights.

    A mistake that changes which weights it has is made at once, and they are drawn again from the
    same random numbers: a matrix that is not there takes none.
    """
    start = torch.get_rng_state()
    attention = MultiHeadAttention(
        config.d_model,
        config.n_heads,
        n_kv_heads=config.n_kv_heads or None,
        d_head=config.d_head,
        qk_norm_eps=config.norm_eps if config.qk_norm else None,
        sink=config.sink,
        dropout=config.dropout,
        bias=True if config.attention_bias else "qkv" if config.qkv_bias else False,
    )
    changes = [name for name in config.mistakes if MISTAKES[name].changes_attention_weights]
    if changes:
        make(changes, attention)
        torch.set_rng_state(start)
        attention.in_projection.reset_parameters()
        if isinstance(attention.in_projection, nn.Linear):
            draw_glorot(attention.in_projection)
    if config.query_key_gain != 1.0:
        weights, *_bias = attention.in_projection.parameters()
        with torch.no_grad():
            n_values = len(weights) * config.d_kv // config.d_qkv
            weights[: len(weights) - n_values] *= config.query_key_gain
    return attention


def _relative(config: TransformerConfig, is_causal: bool) -> Relative | None:
    """Return the positions that act inside attention. Raises TypeError for a layer of another kind.

    A ``Relative`` also works on single tokens, which a decoder with a cache needs.
    """
    kind = POSITIONS[config.position]
    if not kind.is_inside:
        return None
    layer = _layer(kind, is_causal=is_causal, d_head=config.d_head, **config.model_dump())
    if not isinstance(layer, Relative):
        raise TypeError(
            f"Position {kind.name!r} acts inside attention, so {kind.layer} must extend Relative."
        )
    return layer


def added_positions(name: str, *, length: int, d_model: int, side: int | None = None) -> nn.Module:
    """Return what is added to embeddings, which is nothing where a kind acts elsewhere.

    length: rows of a table; side: patches in a row of a picture, None for words.
    Raises UnknownVariant, a KeyError with a sentence.
    """
    kind = POSITIONS[name]
    return _layer(
        kind if kind.is_added else NO_POSITIONS, length=length, d_model=d_model, side=side
    )


def _layer(kind: Position, **values: Any) -> nn.Module:
    layer: nn.Module = resolve(kind.layer)(**{name: values[name] for name in kind.init_args})
    return layer
