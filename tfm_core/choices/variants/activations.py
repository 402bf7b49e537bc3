"""The non-linearities of the feed-forward layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tfm_core.choices.variants.record import Example, Registry, Variant
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation(Variant):
    """How the hidden layer is bent. source: of the layer's equation.

    function: from numbers to numbers of the same shape. is_gated: it bends a third matrix's product
    instead, which then multiplies the hidden layer. code: the hidden layer, with ``{up}`` and
    ``{gate}`` for the two products. latex: the hidden layer, from the two products; bend: what its
    letters stand for, where that has more than one form. n_saved: how many hidden layers' worth of
    numbers PyTorch keeps for the backward pass, beside the result. walk: its paragraph in the walk,
    example: its call there. colour, dash: its line in every figure; a colour of ``plots.palette``.
    """

    function: str
    is_gated: bool
    code: str
    latex: Callable[[str, str], str]
    bend: str | None
    n_saved: int
    walk: str = field(init=False)
    example: Example
    colour: str
    dash: str


RELU = Activation(
    name="relu",
    source="Vaswani et al. 2017, Eq. 2",
    function="torch.nn.functional:relu",
    is_gated=False,
    code="F.relu({up})",
    latex=lambda up, gate: rf"\max(0,\, {up})",
    bend=None,
    n_saved=0,  # its derivative can be seen in its result
    example=Example(
        "F.relu",
        r"F\.relu\(",
        N_("Negative values become 0."),
        ("F.relu(torch.tensor([-2., -0.5, 0., 1.5]))",),
    ),
    colour="blue",
    dash="solid",
)
GELU = Activation(
    name="gelu",
    source="Vaswani et al. 2017, Eq. 2; Hendrycks & Gimpel 2016",
    function="torch.nn.functional:gelu",
    is_gated=False,
    code="F.gelu({up})",
    latex=lambda up, gate: rf"\mathrm{{GELU}}({up})",
    bend=r"\mathrm{GELU}(u) &= \tfrac{u}{2}\left(1 + \mathrm{erf}(u / \sqrt{2})\right)",
    n_saved=1,
    example=Example(
        "F.gelu",
        r"F\.gelu\(",
        N_("Slightly negative numbers pass a little."),
        ("F.gelu(torch.tensor([-2., -0.5, 0., 1.5]))",),
    ),
    colour="orange",
    dash="dash",
)
GELU_TANH = Activation(
    name="gelu_tanh",
    source="Vaswani et al. 2017, Eq. 2; Hendrycks & Gimpel 2016",
    function="tfm_core.layers.feed_forward:gelu_tanh",
    is_gated=False,
    code='F.gelu({up}, approximate="tanh")',
    latex=lambda up, gate: rf"\mathrm{{GELU}}({up})",
    bend=(
        r"\mathrm{GELU}(u) &= "
        r"\tfrac{u}{2}\left(1 + \tanh\left(\sqrt{2/\pi}\,(u + 0.044715\,u^3)\right)\right)"
    ),
    n_saved=1,
    example=GELU.example,
    colour="green",
    dash="dot",
)
SWIGLU = Activation(
    name="swiglu",
    source="Shazeer 2020",
    function="torch.nn.functional:silu",
    is_gated=True,
    code="F.silu({gate}) * {up}",
    latex=lambda up, gate: rf"\left(\mathrm{{SiLU}}({gate}) \odot ({up})\right)",
    bend=None,
    n_saved=3,  # both products, and one of them bent
    example=Example(
        "F.silu",
        r"F\.silu\(",
        N_("x times its sigmoid, which gates another product."),
        ("F.silu(torch.tensor([-2., -0.5, 0., 1.5]))",),
    ),
    colour="purple",
    dash="dashdot",
)
GEGLU = Activation(
    name="geglu",
    source="Shazeer 2020",
    function="torch.nn.functional:gelu",
    is_gated=True,
    code="F.gelu({gate}) * {up}",
    latex=lambda up, gate: rf"\left(\mathrm{{GELU}}({gate}) \odot ({up})\right)",
    bend=GELU.bend,
    n_saved=3,  # both products, and one of them bent
    example=GELU.example,
    colour="vermilion",
    dash="longdash",
)
GEGLU_TANH = Activation(
    name="geglu_tanh",
    source="Shazeer 2020",
    function=GELU_TANH.function,
    is_gated=True,
    code='F.gelu({gate}, approximate="tanh") * {up}',
    latex=GEGLU.latex,
    bend=GELU_TANH.bend,
    n_saved=3,  # both products, and one of them bent
    example=GELU.example,
    colour="sky",
    dash="longdashdot",
)

ACTIVATIONS = Registry("activation", RELU, GELU, GELU_TANH, SWIGLU, GEGLU, GEGLU_TANH)
