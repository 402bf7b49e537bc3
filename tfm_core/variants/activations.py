"""The non-linearities of the feed-forward layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.record import Example, Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation(Variant):
    """How the hidden layer is bent. source: of the layer's equation.

    function: from numbers to numbers of the same shape. is_gated: it bends a third matrix's product
    instead, which then multiplies the hidden layer. code: the hidden layer, with ``{up}`` and
    ``{gate}`` for the two products. latex: the hidden layer, from the two products; bend: what its
    letters stand for, where that has more than one form. n_saved: how many hidden layers' worth of
    numbers PyTorch keeps for the backward pass, beside the result. walk_topic, walk_words: its
    paragraph in the walk, example: its call there. colour, dash: its line in every figure; a colour
    of ``plots.palette``.
    """

    function: str
    is_gated: bool
    code: str
    latex: Callable[[str, str], str]
    bend: str | None
    n_saved: int
    walk_topic: str
    walk_words: str
    example: Example
    colour: str
    dash: str


RELU = Activation(
    name="relu",
    label=N_("ReLU"),
    help=N_("The original: negative values become zero."),
    source="Vaswani et al. 2017, Eq. 2",
    function="torch.nn.functional:relu",
    is_gated=False,
    code="F.relu({up})",
    latex=lambda up, gate: rf"\max(0,\, {up})",
    bend=None,
    n_saved=0,  # its derivative can be seen in its result
    walk_topic="activation-relu",
    walk_words=Paragraph("variants/walk-relu"),
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
    label=N_("GELU"),
    help=N_("A smooth ReLU (BERT, ViT; Hendrycks & Gimpel 2016)."),
    source="Vaswani et al. 2017, Eq. 2; Hendrycks & Gimpel 2016",
    function="torch.nn.functional:gelu",
    is_gated=False,
    code="F.gelu({up})",
    latex=lambda up, gate: rf"\mathrm{{GELU}}({up})",
    bend=r"\mathrm{GELU}(u) &= \tfrac{u}{2}\left(1 + \mathrm{erf}(u / \sqrt{2})\right)",
    n_saved=1,
    walk_topic="activation-gelu",
    walk_words=N_("The activation is GELU, a smooth ReLU: slightly negative values pass a little."),
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
    label=N_("GELU, by tanh"),
    help=N_("An approximation, at most 0.0005 off (GPT-2)."),
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
    walk_topic="activation-gelu_tanh",
    walk_words=Paragraph("variants/walk-gelu-tanh"),
    example=GELU.example,
    colour="green",
    dash="dot",
)
SWIGLU = Activation(
    name="swiglu",
    label=N_("SwiGLU"),
    help=N_("A gated unit with a third matrix (Shazeer 2020; LLaMA)."),
    source="Shazeer 2020",
    function="torch.nn.functional:silu",
    is_gated=True,
    code="F.silu({gate}) * {up}",
    latex=lambda up, gate: rf"\left(\mathrm{{SiLU}}({gate}) \odot ({up})\right)",
    bend=None,
    n_saved=3,  # both products, and one of them bent
    walk_topic="activation-swiglu",
    walk_words=N_("SiLU of one product gates another, from a third matrix (SwiGLU)."),
    example=Example(
        "F.silu",
        r"F\.silu\(",
        N_("x times its sigmoid; gates another product."),
        ("F.silu(torch.tensor([-2., -0.5, 0., 1.5]))",),
    ),
    colour="purple",
    dash="dashdot",
)
GEGLU = Activation(
    name="geglu",
    label=N_("GEGLU"),
    help=N_("SwiGLU with GELU for SiLU (Shazeer 2020; Gemma, ModernBERT)."),
    source="Shazeer 2020",
    function="torch.nn.functional:gelu",
    is_gated=True,
    code="F.gelu({gate}) * {up}",
    latex=lambda up, gate: rf"\left(\mathrm{{GELU}}({gate}) \odot ({up})\right)",
    bend=GELU.bend,
    n_saved=3,  # both products, and one of them bent
    walk_topic="activation-geglu",
    walk_words=N_("GELU of one product gates another, from a third matrix (GEGLU)."),
    example=GELU.example,
    colour="vermilion",
    dash="longdash",
)
GEGLU_TANH = Activation(
    name="geglu_tanh",
    label=N_("GEGLU, by tanh"),
    help=N_("GEGLU with the approximation of GELU (T5 1.1, Flan-T5)."),
    source="Shazeer 2020",
    function=GELU_TANH.function,
    is_gated=True,
    code='F.gelu({gate}, approximate="tanh") * {up}',
    latex=GEGLU.latex,
    bend=GELU_TANH.bend,
    n_saved=3,  # both products, and one of them bent
    walk_topic="activation-geglu_tanh",
    walk_words=N_("GELU, approximated by tanh, of one product gates another (GEGLU)."),
    example=GELU.example,
    colour="sky",
    dash="longdashdot",
)

ACTIVATIONS = Registry("activation", RELU, GELU, GELU_TANH, SWIGLU, GEGLU, GEGLU_TANH)
