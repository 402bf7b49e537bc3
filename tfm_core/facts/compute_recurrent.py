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


def activations(
    config: RecurrentConfig, shape: TextShape, src_len: int, tgt_len: int
) -> tuple[int, int]:
    """Return the numbers kept for the backward pass of one example, about.

    First those that stay in fp32 under autocast, then those of matrix products.
    """
    d, n, cell = config.d_model, config.n_layers, CELLS[config.cell]
    score, gates = ALIGNMENT_SCORES[config.attention], cell.n_gates
    per_word = n * (gates + (5 if config.is_bidirectional else 3)) * d + 2 * d
    per_step = n * (2 * gates + 3) * d + (6 if score.asks_first else 5) * d
    if config.dropout:  # the noise on what goes into each layer, and what is left of that
        per_word += 2 * n * d
        per_step += 4 * d
    at_once = src_len + (0 if score.asks_first else tgt_len)  # else steps are taken one by one
    full = 2 * src_len * tgt_len + tgt_len * shape.tgt_vocabulary
    full += at_once * n * cell.workspace * d
    cells = src_len * per_word + tgt_len * per_step
    pairs = src_len * tgt_len * d if score.is_pairwise else 0
    stays_full = score.asks_first and not cell.workspace  # a GRU's steps, measured on a CPU
    return (full + cells, pairs) if stays_full else (full, pairs + cells)
