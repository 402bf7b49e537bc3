"""How many parameters stand in hidden matrices, which Muon moves; torch-free algebra.

``training.optimisation.hidden_matrices`` says which they are; a test holds this to the models.
"""

from __future__ import annotations

from tfm_core.config import (
    CaptionerConfig,
    EncoderDecoderConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    ViTConfig,
)
from tfm_core.config.shape import Shape, TextShape
from tfm_core.facts.compute import cut_of, layers
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS
from tfm_core.variants.projections import PROJECTIONS
from tfm_core.variants.stems import STEMS


def hidden_numbers(config: ModelConfig, shape: Shape) -> int:
    """Return the parameters in the matrices between what a model reads and its answer."""
    if isinstance(config, RecurrentConfig):
        return _recurrent(config)
    d, (n_encoder, n_decoder) = config.d_model, layers(config)
    attention = _attention(config)
    block = attention + ACTIVATIONS[config.activation].n_matrices * _matrix(d, config.d_ff)
    has_cross = isinstance(config, EncoderDecoderConfig | CaptionerConfig)
    blocks = (n_encoder + n_decoder) * block + n_decoder * has_cross * attention
    return blocks + _ends(config, shape)


def _attention(config: TransformerConfig) -> int:
    """Return the parameters in the matrices of one attention."""
    projections, d, heads = PROJECTIONS[config.projections], config.d_model, config.n_heads
    if projections.is_sliced:
        return 3 * heads * _matrix(d // heads, d // heads)
    return (3 + projections.has_output) * _matrix(d, d)


def _ends(config: TransformerConfig, shape: Shape) -> int:
    """Return those of the patch projection, and of a hidden layer before the labels."""
    if isinstance(shape, TextShape):
        return _matrix(config.d_model, shape.n_hidden) if shape.is_label else 0
    assert isinstance(config, ViTConfig | CaptionerConfig)
    return _matrix(config.d_model, STEMS[config.stem].projected(cut_of(config, shape)))


def _recurrent(config: RecurrentConfig) -> int:
    d, n, score = config.d_model, config.n_layers, ALIGNMENT_SCORES[config.attention]
    gates, width = CELLS[config.cell].n_gates, d // (1 + config.is_bidirectional)
    reader = _matrix(gates * width, d) + _matrix(gates * width, width)
    cells = n * (1 + config.is_bidirectional) * reader + n * 2 * _matrix(gates * d, d)
    if score.asks_first:  # the context goes into the first cell
        cells += _matrix(gates * d, d)
    n_square = score.n_source + score.n_state + n + 2  # attention, bridge, readout
    return cells + n_square * _matrix(d, d)


def _matrix(rows: int, columns: int) -> int:
    """Return the parameters of a matrix; what has one row alone is a vector."""
    return rows * columns if min(rows, columns) > 1 else 0
