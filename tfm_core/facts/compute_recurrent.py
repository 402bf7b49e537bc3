"""What a recurrent model costs: products of its cells, of its attention, and of its ends.

Torch-free algebra, as in ``compute``. An LSTM cell has 4 matrices for what comes in and 4 for its
state, a GRU cell 3 and 3.
"""

from __future__ import annotations

from tfm_core.config import RecurrentConfig
from tfm_core.config.shape import TextShape

GATES = {"lstm": 4, "gru": 3}
WORKSPACE = 12
"""Vectors a token that PyTorch's LSTM over a whole sequence keeps besides, measured on a CPU."""


def macs(config: RecurrentConfig, shape: TextShape, src_len: int, tgt_len: int) -> dict[str, int]:
    """Return the multiply-accumulates of one example by part."""
    d, n = config.d_model, config.n_layers
    outputs = tgt_len * 2 * d * d + tgt_len * d * shape.tgt_vocabulary
    recurrence = src_len * n * _reading(config) + tgt_len * n * 2 * GATES[config.cell] * d * d
    if config.attention == "additive":  # the context goes into the first cell
        recurrence += tgt_len * GATES[config.cell] * d * d
    attention = 2 * tgt_len * src_len * d  # scores or their v, and the context
    if config.attention != "dot":
        attention += src_len * d * d
    if config.attention in {"additive", "concat"}:
        attention += tgt_len * d * d
    return {
        "recurrence": recurrence + n * d * d,  # with the bridge
        "cross-attention": attention,
        "output": outputs,
    }


def _reading(config: RecurrentConfig) -> int:
    """Return the products of one encoder layer at one token."""
    d, gates = config.d_model, GATES[config.cell]
    return gates * d * (d + d // 2) if config.is_bidirectional else gates * 2 * d * d


def activations(
    config: RecurrentConfig, shape: TextShape, src_len: int, tgt_len: int
) -> tuple[int, int]:
    """Return the numbers kept for the backward pass of one example, about.

    First those that stay in fp32 under autocast, then those of matrix products.
    """
    d, n, gates = config.d_model, config.n_layers, GATES[config.cell]
    is_additive, is_lstm = config.attention == "additive", config.cell == "lstm"
    per_word = n * (gates + (5 if config.is_bidirectional else 3)) * d + 2 * d
    per_step = n * (2 * gates + 3) * d + (6 if is_additive else 5) * d
    if config.dropout:  # the noise on what goes into each layer, and what is left of that
        per_word += 2 * n * d
        per_step += 4 * d
    whole = src_len + (0 if is_additive else tgt_len)  # additive steps are taken one by one
    full = 2 * src_len * tgt_len + tgt_len * shape.tgt_vocabulary
    full += whole * n * WORKSPACE * d if is_lstm else 0
    cells = src_len * per_word + tgt_len * per_step
    pairs = src_len * tgt_len * d if config.attention in {"additive", "concat"} else 0
    stays_full = is_additive and not is_lstm  # a GRU's steps taken one by one, measured on a CPU
    return (full + cells, pairs) if stays_full else (full, pairs + cells)
