"""The equations of one recurrent model with attention, in LaTeX."""

from __future__ import annotations

from tfm_core.config import RecurrentConfig
from tfm_core.config.shape import Shape, TextShape
from tfm_core.inspect.equations.blocks import Equation
from tfm_core.sentences import N_
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES, AlignmentScore
from tfm_core.variants.cells import CELLS


def _attention_latex(score: AlignmentScore) -> str:
    """Return score, softmax and context of one kind of attention."""
    return _lines(
        score.latex,
        r"\alpha_{tj} = \mathrm{softmax}_j(e_{tj})",
        r"c_t = \sum_j \alpha_{tj} h_j",
    )


def _lines(*parts: str) -> str:
    """Return equations one below the other, on a phone too, with their equals signs in line."""
    return (
        r"\begin{aligned} "
        + r" \\ ".join(p.replace(" = ", " &= ", 1) for p in parts)
        + r" \end{aligned}"
    )


def equations(config: RecurrentConfig, shape: Shape) -> dict[str, Equation]:
    """Return the equations by the sections of the generated file."""
    assert isinstance(shape, TextShape)
    cell, score = CELLS[config.cell], ALIGNMENT_SCORES[config.attention]
    reads = r"h_j = f(h_{j-1}, x_j)"
    if config.is_bidirectional:
        reads = r"h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j]"
    first = r"s_0 = \tanh(W_0 h_S + b_0)"
    if config.is_bidirectional:
        first = r"s_0 = \tanh(W_0 [\overrightarrow{h}_S; \overleftarrow{h}_1] + b_0)"
    steps = r"s_t = f(s_{t-1}, y_{t-1})"
    if score.asks_first:
        steps = r"s_t = f(s_{t-1}, [y_{t-1}; c_t])"
    bias = " + b" if shape.output_bias else ""
    return {
        "embedding": Equation(
            N_("Embedding"),
            rf"x_j = \sqrt{{{config.d_model}}}\,E_{{w_j}}",
            "no positions are added",
        ),
        "encoder": Equation(N_("The cell f, and reading"), _lines(*cell.latex, reads), cell.source),
        "attention": Equation(N_("Attention"), _attention_latex(score), score.source),
        "decoder": Equation(
            N_("Writing"),
            _lines(first, steps),
            "Bahdanau et al. 2015, appendix A.2",
        ),
        "model": Equation(
            N_("The answer"),
            rf"p(y_t) = \mathrm{{softmax}}\left(W_o \tanh(W_c [s_t; c_t]){bias}\right)",
            "Luong et al. 2015, Eq. 5 and 6",
        ),
    }
