"""From a config to a stack of blocks, and to the positions of words: what the families share."""

from __future__ import annotations

from functools import partial

from torch import nn

from tfm_core.config import BlockConfig, TransformerConfig
from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.norms import make_norm
from tfm_core.layers.positions import (
    FixedPositions,
    LearnedPositions,
    NoPositions,
    sinusoidal,
)
from tfm_core.layers.relative import Alibi, Rotation


def stack(
    config: TransformerConfig,
    n_layers: int,
    *,
    has_cross: bool = False,
) -> Stack:
    """Return ``n_layers`` equal blocks and, where they are pre-norm, the last norm."""
    blocks = [_block(config, has_cross) for _ in range(n_layers)]
    final_norm = (
        make_norm(config.norm, config.d_model, config.norm_eps) if config.norm_first else None
    )
    return Stack(blocks, final_norm, relative=_relative(config))


def _block(config: BlockConfig, has_cross: bool) -> Block:
    return Block(
        config.d_model,
        config.n_heads,
        config.d_ff,
        has_cross=has_cross,
        dropout=config.dropout,
        activation=config.activation,
        norm=config.norm,
        norm_first=config.norm_first,
        bias=config.bias,
        eps=config.norm_eps,
    )


def _relative(config: TransformerConfig) -> nn.Module | None:
    if config.position == "rotary":
        return Rotation(config.d_head)
    if config.position == "alibi":
        return Alibi(config.n_heads)
    return None


def text_positions(position: str, d_model: int, length: int) -> nn.Module:
    """Return what is added to the embeddings of words; ``length``: rows of a table."""
    if position == "sinusoidal":
        return FixedPositions(length, partial(sinusoidal, d_model=d_model))
    if position == "learned":
        return LearnedPositions(length, d_model)
    return NoPositions()
