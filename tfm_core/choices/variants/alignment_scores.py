"""How a decoder's state asks whether a source word fits, in a recurrent model with attention."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentScore(Variant):
    """layer: called with d_model.

    attends_before_step: the state before a step attends, and the context goes into the cell
    (Bahdanau et al. 2015); else the state after it attends (Luong et al. 2015). is_pairwise: if
    a vector is made for each pair of words. latex: of the score.
    """

    layer: str
    attends_before_step: bool
    is_pairwise: bool
    latex: str

    @property
    def order(self) -> str:
        """Whose order it follows, as the walk's paragraphs are called."""
        return "additive" if self.attends_before_step else "luong"


ADDITIVE = AlignmentScore(
    name="additive",
    source="Bahdanau et al. 2015, appendix A.1.2",
    layer="tfm_core.layers.recurrent:AdditiveScore",
    attends_before_step=True,
    is_pairwise=True,
    latex=r"e_{tj} = v^\top \tanh\left(W s_{t-1} + U h_j + b\right)",
)
DOT = AlignmentScore(
    name="dot",
    source="Luong et al. 2015, Eq. 8",
    layer="tfm_core.layers.recurrent:DotScore",
    attends_before_step=False,
    is_pairwise=False,
    latex=r"e_{tj} = s_t^\top h_j",
)
GENERAL = AlignmentScore(
    name="general",
    source="Luong et al. 2015, Eq. 8",
    layer="tfm_core.layers.recurrent:GeneralScore",
    attends_before_step=False,
    is_pairwise=False,
    latex=r"e_{tj} = s_t^\top W h_j",
)
CONCAT = AlignmentScore(
    name="concat",
    source="Luong et al. 2015, Eq. 8",
    layer="tfm_core.layers.recurrent:ConcatScore",
    attends_before_step=False,
    is_pairwise=True,
    latex=r"e_{tj} = v^\top \tanh\left(W [s_t; h_j]\right)",
)
LINEAR = AlignmentScore(
    name="linear",
    source="Bahdanau et al. 2015, appendix A.1.2, as one linear layer",
    layer="tfm_core.layers.recurrent:LinearScore",
    attends_before_step=True,
    is_pairwise=False,
    latex=r"e_{tj} = w^\top [s_{t-1}; h_j]",
)

ALIGNMENT_SCORES = Registry("alignment score", ADDITIVE, DOT, GENERAL, CONCAT, LINEAR)
