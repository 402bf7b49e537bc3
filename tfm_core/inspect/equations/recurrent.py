"""The equations of one recurrent model with attention, in LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfm_core.anatomy import Anatomy
from tfm_core.choices.config import RecurrentConfig
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.cells import CELLS
from tfm_core.inspect.equations.blocks import Equation
from tfm_core.sentences import N_


def _lines(*parts: str) -> str:
    """Return equations one below the other, on a phone too, with their equals signs in line."""
    return (
        r"\begin{aligned} "
        + r" \\ ".join(p.replace(" = ", " &= ", 1) for p in parts)
        + r" \end{aligned}"
    )


def _embedding(config: RecurrentConfig, _model: Anatomy) -> Equation:
    latex = rf"x_j = \sqrt{{{config.d_model}}}\,E_{{w_j}}"
    return Equation(N_("Embedding"), latex, N_("no positions are added"))


def _encoder(config: RecurrentConfig, _model: Anatomy) -> Equation:
    cell, reads = CELLS[config.cell], r"h_j = f(h_{j-1}, x_j)"
    if config.is_bidirectional:
        reads = r"h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j]"
    return Equation(N_("The cell f, and reading"), _lines(*cell.latex, reads), cell.source)


def _attention(config: RecurrentConfig, _model: Anatomy) -> Equation:
    """Return score, softmax and context of one kind of attention."""
    score = ALIGNMENT_SCORES[config.attention]
    shares, context = r"\alpha_{tj} = \mathrm{softmax}_j(e_{tj})", r"c_t = \sum_j \alpha_{tj} h_j"
    return Equation(N_("Attention"), _lines(score.latex, shares, context), score.source)


def _decoder(config: RecurrentConfig, _model: Anatomy) -> Equation:
    first, steps = r"s_0 = \tanh(W_0 h_S + b_0)", r"s_t = f(s_{t-1}, y_{t-1})"
    if config.is_bidirectional:
        first = r"s_0 = \tanh(W_0 [\overrightarrow{h}_S; \overleftarrow{h}_1] + b_0)"
    if ALIGNMENT_SCORES[config.attention].attends_before_step:
        steps = r"s_t = f(s_{t-1}, [y_{t-1}; c_t])"
    return Equation(N_("Writing"), _lines(first, steps), "Bahdanau et al. 2015, appendix A.2")


def _model(_config: RecurrentConfig, model: Anatomy) -> Equation:
    bias = " + b" if len(model.of_kind("head")[0].parameters) > 1 else ""
    latex = rf"p(y_t) = \mathrm{{softmax}}\left(W_o \tanh(W_c [s_t; c_t]){bias}\right)"
    return Equation(N_("The answer"), latex, "Luong et al. 2015, Eq. 5 and 6")


EQUATIONS: dict[str, Callable[[Any, Anatomy], Equation]] = {
    "embedding": _embedding,
    "encoder": _encoder,
    "attention": _attention,
    "decoder": _decoder,
    "model": _model,
}
