"""Positions added to embeddings: none, learned ones, and sine and cosine waves."""

from textwrap import dedent

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.position import (
    Added,
    Function,
    Position,
    Style,
    always_possible,
    nothing_more,
)

NO_POSITIONS = Position(
    name="none",
    label=N_("None"),
    help=N_("An encoder then sees a bag of tokens."),
    source="Vaswani et al. 2017, section 3.5, says why there must be some",
    acts_on="nothing",
    layer="tfm_core.layers.positions:NoPositions",
    init_args=(),
    needs_grid=False,
    is_learned=False,
    impossible=always_possible,
    functions=(),
    topic="position-none",
    words=Paragraph("variants/walk-no-positions"),
    style=Style("grey", "dot", "x"),
    added=None,
    inside=None,
)

LEARNED = Position(
    name="learned",
    label=N_("Learned"),
    help=N_("A trained vector per position (BERT, GPT-2, ViT)."),
    source="Gehring et al. 2017, section 3.1",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:LearnedPositions",
    init_args=("length", "d_model"),
    needs_grid=False,
    is_learned=True,
    impossible=always_possible,
    functions=(),
    topic="position-learned",
    words=Paragraph("variants/walk-learned"),
    style=Style("vermilion", "dash", "square"),
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

WAVES = Function(
    "sinusoidal",
    dedent('''\
    def sinusoidal(length, d_model):
        """(length, d_model) of sine and cosine waves (Vaswani et al. 2017, section 3.5)."""
        rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()
    '''),
)


def _odd_width(d_model: int, d_head: int) -> str | None:
    if d_model % 2:
        return N_("Sinusoidal positions need an even d_model; it is {d_model}.", d_model=d_model)
    return None


def _waves(d_model: int) -> tuple[str, ...]:
    angle = r"\frac{t}{10000^{2i/" + str(d_model) + "}}"
    return (
        rf"\mathrm{{PE}}_{{t,2i}} &= \sin{angle}",
        rf"\mathrm{{PE}}_{{t,2i+1}} &= \cos{angle}",
    )


SINUSOIDAL = Position(
    name="sinusoidal",
    label=N_("Sinusoidal"),
    help=N_("Fixed sine and cosine waves (Vaswani et al. 2017)."),
    source="Vaswani et al. 2017, section 3.5",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:sinusoidal_positions",
    init_args=("length", "d_model"),
    needs_grid=False,
    is_learned=False,
    impossible=_odd_width,
    functions=(WAVES,),
    topic="position-sinusoidal",
    words=Paragraph("variants/walk-sinusoidal"),
    style=Style("blue", "solid", "circle"),
    added=Added(
        latex=r"\mathrm{PE}_t",
        of_words=r"\mathrm{PE}_t",
        first=r"\mathrm{PE}_0",
        rows=_waves,
        doc="Adds fixed sine and cosine waves.",
        init=None,
        forward="return x + sinusoidal(x.size(1), D_MODEL).to(x)",
    ),
    inside=None,
)


def _width_without_quarters(d_model: int, d_head: int) -> str | None:
    if d_model % 4:
        return N_(
            "2-D sinusoidal positions need a d_model divisible by 4; it is {d_model}.",
            d_model=d_model,
        )
    return None


SINUSOIDAL_2D = Position(
    name="sinusoidal-2d",
    label=N_("Sinusoidal, 2-D"),
    help=N_("Half of the waves encode the row, half the column."),
    source="Dosovitskiy et al. 2021, appendix D.4",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:grid_positions",
    init_args=("length", "side", "d_model"),
    needs_grid=True,
    is_learned=False,
    impossible=_width_without_quarters,
    functions=(WAVES,),
    topic="position-sinusoidal-2d",
    words=Paragraph("variants/walk-sinusoidal-2d"),
    style=Style("sky", "dashdot", "square-open"),
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
