"""Sinusoidal positions of patches: half of the waves tell the row, half the column."""

from textwrap import dedent

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.position import Added, Look, Position, nothing_more
from tfm_core.variants.positions.sinusoidal import WAVES


def _impossible(d_model: int, d_head: int) -> str | None:
    if d_model % 4:
        return N_(
            "2-D sinusoidal positions need a d_model divisible by 4; it is {d_model}.",
            d_model=d_model,
        )
    return None


SINUSOIDAL_2D = Position(
    name="sinusoidal-2d",
    label=N_("Sinusoidal, 2-D"),
    help=N_("Half of the waves encode a patch's row, half its column."),
    source="Dosovitskiy et al. 2021, appendix D.4",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:grid_positions",
    made_of=("length", "side", "d_model"),
    needs_grid=True,
    is_learned=False,
    impossible=_impossible,
    functions=(WAVES,),
    topic="position-sinusoidal-2d",
    words=Paragraph("variants/walk-sinusoidal-2d"),
    look=Look("sky", "dashdot", "square-open"),
    added=Added(
        latex=r"\mathrm{PE}_{\mathrm{row}(t),\mathrm{column}(t)}",
        of_words=r"\mathrm{PE}_{\mathrm{row}(t),\mathrm{column}(t)}",
        first=None,
        rows=nothing_more,
        doc="Adds waves: half of the dimensions tell the row of a patch, half its column.",
        init=None,
        forward=dedent("""\
            waves = sinusoidal(SIDE, D_MODEL // 2)
            rows = waves[:, None].expand(SIDE, SIDE, -1)
            columns = waves[None].expand(SIDE, SIDE, -1)
            grid = torch.cat([rows, columns], -1).flatten(0, 1)
            return x + F.pad(grid, (0, 0, x.size(1) - SIDE**2, 0)).to(x)"""),
    ),
    inside=None,
)
