"""From a config to a stack of blocks, and to the positions of words: what the families share."""

from __future__ import annotations

from functools import partial

from torch import nn

from tfm_core.config import BlockConfig, DecoderOnlyConfig, TransformerConfig
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.norms import make_norm
from tfm_core.variants.positions import POSITIONS, Position
from tfm_core.variants.positions.none import NONE
from tfm_core.variants.projections import PROJECTIONS
from tfm_core.variants.record import resolve
from tfm_core.variants.residuals import RESIDUALS


def stack(
    config: TransformerConfig,
    n_layers: int,
    *,
    has_cross: bool = False,
) -> Stack:
    """Return ``n_layers`` equal blocks and, where they are pre-norm, the last norm."""
    blocks = [_block(config, has_cross) for _ in range(n_layers)]
    final_norm = (
        make_norm(config.norm, config.d_model, config.norm_eps) if config.has_final_norm else None
    )
    is_causal = has_cross or isinstance(config, DecoderOnlyConfig)
    return Stack(blocks, final_norm, relative=_relative(config, is_causal))


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
        attend=partial(
            MultiHeadAttention,
            config.d_model,
            config.n_heads,
            dropout=config.dropout,
            bias=config.attention_bias,
            has_output=PROJECTIONS[config.projections].has_output,
            is_sliced=PROJECTIONS[config.projections].is_sliced,
            divisor=config.score_divisor,
            query_key_gain=config.query_key_gain,
        ),
        has_shared_norm=config.shared_norm,
        has_residual=RESIDUALS[config.residual].has_sum,
        normed_residuals=RESIDUALS[config.residual].normed,
    )


def _relative(config: TransformerConfig, is_causal: bool) -> nn.Module | None:
    kind = POSITIONS[config.position]
    if not kind.is_inside:
        return None
    d_model, d_head, n_heads = config.d_model, config.d_head, config.n_heads
    return _layer(kind, d_model=d_model, d_head=d_head, n_heads=n_heads, is_causal=is_causal)


def added_positions(name: str, *, length: int, d_model: int, side: int | None = None) -> nn.Module:
    """Return what is added to embeddings, which is nothing where a kind acts elsewhere.

    length: rows of a table; side: patches in a row of a picture, None for words.
    Raises UnknownVariant, a KeyError with a sentence.
    """
    kind = POSITIONS[name]
    return _layer(kind if kind.is_added else NONE, length=length, d_model=d_model, side=side)


def _layer(kind: Position, **values: int | None) -> nn.Module:
    layer: nn.Module = resolve(kind.layer)(**{name: values[name] for name in kind.made_of})
    return layer
