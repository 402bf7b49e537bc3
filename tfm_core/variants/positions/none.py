"""No positions: a bag of tokens, unless a mask tells the order."""

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.position import Look, Position, always_possible

NONE = Position(
    name="none",
    label=N_("None"),
    help=N_("No positions: an encoder then sees a bag of tokens."),
    source="Vaswani et al. 2017, section 3.5, says why there must be some",
    acts_on="nothing",
    layer="tfm_core.layers.positions:NoPositions",
    made_of=(),
    needs_grid=False,
    is_learned=False,
    impossible=always_possible,
    functions=(),
    topic="position-none",
    words=Paragraph("variants/walk-no-positions"),
    look=Look("grey", "dot", "x"),
    added=None,
    inside=None,
)
