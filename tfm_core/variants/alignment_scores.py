"""How a decoder's state asks whether a source word fits, in a recurrent model with attention."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentScore(Variant):
    """layer: called with d_model.

    attends_before_step: the state before a step attends, and the context goes into the cell
    (Bahdanau et al. 2015); else the state after it attends (Luong et al. 2015). is_pairwise: if
    a vector is made for each pair of words. latex: of the score. modules, prepared, scores: lines
    of its class in a generated file: what it holds, what is worked out once from ``memory``, and
    the scores from ``states`` and ``prepared``. walk_topic: its paragraph in the walk.
    """

    layer: str
    attends_before_step: bool
    is_pairwise: bool
    latex: str
    modules: tuple[str, ...]
    prepared: str
    scores: tuple[str, ...]
    walk_topic: str

    @property
    def order(self) -> str:
        """Whose order it follows, as the walk's paragraphs are called."""
        return "additive" if self.attends_before_step else "luong"


ADDITIVE = AlignmentScore(
    name="additive",
    label=N_("Additive"),
    help=N_("v tanh(W s + U h), before each step (Bahdanau et al. 2015)."),
    source="Bahdanau et al. 2015, appendix A.1.2",
    layer="tfm_core.layers.recurrent:AdditiveScore",
    attends_before_step=True,
    is_pairwise=True,
    latex=r"e_{tj} = v^\top \tanh\left(W s_{t-1} + U h_j + b\right)",
    modules=(
        "self.of_state = nn.Linear(D_MODEL, D_MODEL, bias=False)  # W",
        "self.of_source = nn.Linear(D_MODEL, D_MODEL)  # U",
        "self.v = nn.Linear(D_MODEL, 1, bias=False)",
    ),
    prepared="self.of_source(memory)",
    scores=(
        "query_projection = self.of_state(states)[:, :, None]",
        "return self.v((query_projection + prepared[:, None]).tanh()).squeeze(-1)",
    ),
    walk_topic="score-additive",
)
DOT = AlignmentScore(
    name="dot",
    label=N_("Dot product"),
    help=N_("s h, after each step (Luong et al. 2015)."),
    source="Luong et al. 2015, Eq. 8",
    layer="tfm_core.layers.recurrent:DotScore",
    attends_before_step=False,
    is_pairwise=False,
    latex=r"e_{tj} = s_t^\top h_j",
    modules=(),
    prepared="memory",
    scores=("return states @ prepared.mT",),
    walk_topic="score-dot",
)
GENERAL = AlignmentScore(
    name="general",
    label=N_("General"),
    help=N_("s W h, after each step (Luong et al. 2015)."),
    source="Luong et al. 2015, Eq. 8",
    layer="tfm_core.layers.recurrent:GeneralScore",
    attends_before_step=False,
    is_pairwise=False,
    latex=r"e_{tj} = s_t^\top W h_j",
    modules=("self.matrix = nn.Linear(D_MODEL, D_MODEL, bias=False)  # W",),
    prepared="self.matrix(memory)",
    scores=("return states @ prepared.mT",),
    walk_topic="score-general",
)
CONCAT = AlignmentScore(
    name="concat",
    label=N_("Concat"),
    help=N_("v tanh(W [s; h]), after each step (Luong et al. 2015)."),
    source="Luong et al. 2015, Eq. 8",
    layer="tfm_core.layers.recurrent:ConcatScore",
    attends_before_step=False,
    is_pairwise=True,
    latex=r"e_{tj} = v^\top \tanh\left(W [s_t; h_j]\right)",
    modules=(
        "self.joined = nn.Linear(2 * D_MODEL, D_MODEL, bias=False)  # W",
        "self.v = nn.Linear(D_MODEL, 1, bias=False)",
    ),
    prepared="memory @ self.joined.weight[:, D_MODEL:].T",
    scores=(
        "query_projection = (states @ self.joined.weight[:, :D_MODEL].T)[:, :, None]",
        "return self.v((query_projection + prepared[:, None]).tanh()).squeeze(-1)",
    ),
    walk_topic="score-concat",
)
LINEAR = AlignmentScore(
    name="linear",
    label=N_("Linear"),
    help=N_("w [s; h], before each step: the softmax cancels s."),
    source="Bahdanau et al. 2015, appendix A.1.2, as one linear layer",
    layer="tfm_core.layers.recurrent:LinearScore",
    attends_before_step=True,
    is_pairwise=False,
    latex=r"e_{tj} = w^\top [s_{t-1}; h_j]",
    modules=("self.joined = nn.Linear(2 * D_MODEL, 1, bias=False)  # w",),
    prepared="memory @ self.joined.weight[:, D_MODEL:].T",
    scores=("return states @ self.joined.weight[:, :D_MODEL].T + prepared.mT",),
    walk_topic="score-linear",
)

ALIGNMENT_SCORES = Registry("alignment score", ADDITIVE, DOT, GENERAL, CONCAT, LINEAR)
