"""What a recurrent model costs: products of its cells, of its attention, and of its ends.

Torch-free algebra, as in ``compute``. An LSTM cell has 4 matrices for what comes in and 4 for its
state, a GRU cell 3 and 3.
"""

from __future__ import annotations

from tfm_core.config import RecurrentConfig
from tfm_core.config.shape import TextShape
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS


def macs(config: RecurrentConfig, shape: TextShape, src_len: int, tgt_len: int) -> dict[str, int]:
    """Return the multiply-accumulates of one example by part."""
    d, n = config.d_model, config.n_layers
    score, gates = ALIGNMENT_SCORES[config.attention], CELLS[config.cell].n_gates
    outputs = tgt_len * 2 * d * d + tgt_len * d * shape.tgt_vocabulary
    recurrence = src_len * n * _reading(config) + tgt_len * n * 2 * gates * d * d
    if score.asks_first:  # the context goes into the first cell
        recurrence += tgt_len * gates * d * d
    attention = 2 * tgt_len * src_len * d  # scores or their v, and the context
    attention += (score.n_source * src_len + score.n_state * tgt_len) * d * d
    return {
        "recurrence": recurrence + n * d * d,  # with the bridge
        "cross-attention": attention,
        "output": outputs,
    }


def _reading(config: RecurrentConfig) -> int:
    """Return the products of one encoder layer at one token."""
    d, gates = config.d_model, CELLS[config.cell].n_gates
    return gates * d * (d + d // 2) if config.is_bidirectional else gates * 2 * d * d


def activations(config: RecurrentConfig, shape: TextShape, src_len: int, tgt_len: int) -> int:
    """Return the numbers kept for the backward pass of one example, about."""
    d, n, cell = config.d_model, config.n_layers, CELLS[config.cell]
    score, gates, whole = ALIGNMENT_SCORES[config.attention], cell.n_gates, cell.workspace
    per_word = n * (gates + 4 + whole) * d + 2 * d
    if score.asks_first:
        per_step = n * (2 * gates + 3) * d + 6 * d
    else:
        per_step = n * (2 * gates + 3 + whole) * d + 4 * d
    pairs = src_len * tgt_len * (d if score.is_pairwise else 0)
    return (
        src_len * per_word
        + tgt_len * per_step
        + pairs
        + 2 * src_len * tgt_len
        + tgt_len * shape.tgt_vocabulary
    )
