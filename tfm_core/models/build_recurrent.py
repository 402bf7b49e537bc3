"""From the config of a recurrent model to its module."""

from __future__ import annotations

from torch import nn

from tfm_core.config import RecurrentConfig
from tfm_core.config.shape import TextShape
from tfm_core.layers.recurrent import SCORES, RecurrentAttention
from tfm_core.models.embedding import TokenEmbedding
from tfm_core.models.recurrent import (
    AdditiveDecoder,
    LuongDecoder,
    Reader,
    RecurrentEncoder,
    RecurrentTranslator,
)


def build_recurrent(config: RecurrentConfig, shape: TextShape) -> RecurrentTranslator:
    """Build an encoder-decoder of recurrent cells with attention."""
    d, n = config.d_model, config.n_layers
    readers = [Reader(config.cell, d, is_bidirectional=config.is_bidirectional) for _ in range(n)]
    src = TokenEmbedding(shape.src_vocabulary, d)
    tgt = src if shape.one_vocabulary else TokenEmbedding(shape.tgt_vocabulary, d)
    attention = RecurrentAttention(SCORES[config.attention](d))
    decoder = AdditiveDecoder if config.attention == "additive" else LuongDecoder
    return RecurrentTranslator(
        src_embedding=src,
        tgt_embedding=tgt,
        encoder=RecurrentEncoder(readers, config.dropout),
        decoder=decoder(config.cell, d, n, attention),
        bridge=nn.Linear(d, n * d),
        readout=nn.Linear(2 * d, d, bias=False),
        output=nn.Linear(d, shape.tgt_vocabulary, bias=shape.output_bias),
        pad_id=shape.pad_id,
        has_cells=config.cell == "lstm",
        dropout=config.dropout,
    )
