"""From the config of a recurrent model to its module."""

from __future__ import annotations

from torch import nn

from tfm_core.config import RecurrentConfig
from tfm_core.config.shape import TextShape
from tfm_core.layers.recurrent import RecurrentAttention
from tfm_core.models.embedding import TokenEmbedding
from tfm_core.models.recurrent import (
    AdditiveDecoder,
    LuongDecoder,
    Reader,
    RecurrentEncoder,
    RecurrentTranslator,
)
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS
from tfm_core.variants.record import resolve


def build_recurrent(config: RecurrentConfig, shape: TextShape) -> RecurrentTranslator:
    """Build an encoder-decoder of recurrent cells with attention."""
    d, n = config.d_model, config.n_layers
    readers = [Reader(config.cell, d, is_bidirectional=config.is_bidirectional) for _ in range(n)]
    src = TokenEmbedding(shape.src_vocabulary, d)
    tgt = src if shape.one_vocabulary else TokenEmbedding(shape.tgt_vocabulary, d)
    score = ALIGNMENT_SCORES[config.attention]
    attention = RecurrentAttention(resolve(score.layer)(d))
    decoder = AdditiveDecoder if score.asks_first else LuongDecoder
    return RecurrentTranslator(
        src_embedding=src,
        tgt_embedding=tgt,
        encoder=RecurrentEncoder(readers, config.dropout),
        decoder=decoder(config.cell, d, n, attention),
        bridge=nn.Linear(d, n * d),
        readout=nn.Linear(2 * d, d, bias=False),
        output=nn.Linear(d, shape.tgt_vocabulary, bias=shape.output_bias),
        pad_id=shape.pad_id,
        has_cells=CELLS[config.cell].has_memory,
        dropout=config.dropout,
    )
