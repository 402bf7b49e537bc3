"""Recurrent cells, and how they score each source word for attention."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Variant):
    """sequence, step: torch's layer over a whole sequence, and its cell for one step.

    has_memory: whether it has a second vector beside its state. n_gates: matrices for what
    comes in, and as many for its state. workspace: vectors a token that torch's layer over a whole
    sequence keeps besides, measured on a CPU. latex: its equations.
    """

    sequence: str
    step: str
    has_memory: bool
    n_gates: int
    workspace: int
    latex: tuple[str, ...]

    @property
    def class_name(self) -> str:
        """The name of the layer in torch.nn."""
        return self.sequence.partition(":")[2]


LSTM = Cell(
    name="lstm",
    source="Hochreiter & Schmidhuber 1997",
    sequence="tfm_core.layers.fast:LSTM",
    step="torch.nn:LSTMCell",
    has_memory=True,
    n_gates=4,
    workspace=12,
    latex=(
        r"i, f, o = \sigma(W x + U h + b)",
        r"g = \tanh(W_g x + U_g h + b_g)",
        r"c' = f \odot c + i \odot g",
        r"h' = o \odot \tanh(c')",
    ),
)
GRU = Cell(
    name="gru",
    source="Cho et al. 2014",
    sequence="torch.nn:GRU",
    step="torch.nn:GRUCell",
    has_memory=False,
    n_gates=3,
    workspace=0,
    latex=(
        r"r = \sigma(W_r x + U_r h + b_r)",
        r"z = \sigma(W_z x + U_z h + b_z)",
        r"n = \tanh(W_n x + b_n + r \odot (U_n h + c_n))",
        r"h' = (1 - z) \odot n + z \odot h",
    ),
)

CELLS = Registry("recurrent cell", LSTM, GRU)


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
