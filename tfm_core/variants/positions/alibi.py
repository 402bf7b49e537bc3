"""ALiBi: a penalty on distance in every score, Press et al. 2022."""

from textwrap import dedent

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.position import (
    Function,
    Inside,
    Look,
    Position,
    always_possible,
)

_ALIBI = Function(
    "alibi",
    dedent('''\
    def alibi(length):
        """(N_HEADS, length, length): minus slope times distance (Press et al. 2022)."""

        def powers(n):
            return [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]

        below = 2 ** math.floor(math.log2(N_HEADS))
        slopes = powers(below) + powers(2 * below)[0::2][: N_HEADS - below]
        positions = torch.arange(length, dtype=torch.float32)
        distance = (positions[:, None] - positions[None, :]).abs()
        return -torch.tensor(slopes)[:, None, None] * distance
    '''),
)

ALIBI = Position(
    name="alibi",
    label=N_("ALiBi"),
    help=N_("Lowers each score with distance (Press et al. 2022)."),
    source="Press et al. 2022, section 3",
    acts_on="scores",
    layer="tfm_core.layers.relative:Alibi",
    made_of=("n_heads",),
    needs_grid=False,
    is_learned=False,
    impossible=always_possible,
    functions=(_ALIBI,),
    topic="position-alibi",
    words=Paragraph("variants/walk-alibi"),
    look=Look("purple", "longdash", "triangle-up"),
    added=None,
    inside=Inside(
        query=r"q_i^\top",
        key="k_j",
        plus=r" - m_h\,|i - j|",
        where="",
        title=N_("ALiBi's penalty"),
        topic="alibi",
        words=N_("ALiBi subtracts slope × distance; each head has its own slope."),
        parameters={},
        kept_once="",
        by_distance=Paragraph("variants/alibi-slopes"),
        init=None,
        made="alibi(x.size(1)).to(x)",
        argument="bias",
        turn=None,
    ),
)
