"""Learned positions: one trained vector for each position, as in BERT, GPT-2 and ViT."""

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.position import (
    Added,
    Look,
    Position,
    always_possible,
    nothing_more,
)

LEARNED = Position(
    name="learned",
    label=N_("Learned"),
    help=N_("One trained vector per position (BERT, GPT-2, ViT)."),
    source="Gehring et al. 2017, section 3.1",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:LearnedPositions",
    made_of=("length", "d_model"),
    needs_grid=False,
    is_learned=True,
    impossible=always_possible,
    functions=(),
    topic="position-learned",
    words=Paragraph("variants/walk-learned"),
    look=Look("vermilion", "dash", "square"),
    added=Added(
        latex="P_t",
        of_words=r"P^{\mathrm{word}}_t",
        first="P_0",
        rows=nothing_more,
        doc="Adds one trained vector a position.",
        init="self.table = nn.Parameter(0.02 * torch.randn({length}, D_MODEL))",
        forward="return x + self.table[: x.size(1)]",
    ),
    inside=None,
)
