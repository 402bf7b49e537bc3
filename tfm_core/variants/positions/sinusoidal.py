"""Sinusoidal positions: fixed sine and cosine waves, Vaswani et al. 2017, section 3.5."""

from textwrap import dedent

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.position import Added, Function, Look, Position

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


def _impossible(d_model: int, d_head: int) -> str | None:
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
    help=N_("Fixed sine and cosine waves (Vaswani et al. 2017, 3.5)."),
    source="Vaswani et al. 2017, section 3.5",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:sinusoidal_positions",
    made_of=("length", "d_model"),
    needs_grid=False,
    is_learned=False,
    impossible=_impossible,
    functions=(WAVES,),
    topic="position-sinusoidal",
    words=Paragraph("variants/walk-sinusoidal"),
    look=Look("blue", "solid", "circle"),
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
