"""The norms, which keep every token's vector in range, and when one follows the last block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.record import Example, Registry, Variant

NORM_EPS = 1e-5
"""What nn.LayerNorm takes where no epsilon is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm(Variant):
    """layer: called with d_model and ``eps``. latex: the equation, from d_model and epsilon.

    parameters: the shape of each trained tensor, as formulas. n_saved: numbers that PyTorch saves
    of a token for the backward pass, from d_model, besides the result; saves_input: whether its
    input is among them. code: the expression that makes it in a generated file, from epsilon;
    classes: the source of its classes there. spread: the statistic over the numbers of a token, in
    words. walk_topic, walk_words: its paragraph in the walk, example: its call there. phrase: its
    name in the name of a run. Without a norm there is no equation, code or spread.
    """

    layer: str
    parameters: Mapping[str, tuple[str, ...]]
    latex: Callable[[int, str], str] | None
    n_saved: Callable[[int], int]
    saves_input: bool
    code: Callable[[float], str] | None
    classes: tuple[str, ...]
    example: Example | None
    spread: str | None
    walk_topic: str
    walk_words: str
    phrase: str


LAYER_NORM = Norm(
    name="layernorm",
    label=N_("LayerNorm"),
    help=N_("Subtract mean, divide by standard deviation (Ba et al. 2016)."),
    source="Ba et al. 2016",
    layer="torch.nn:LayerNorm",
    parameters={"weight": ("d_model",), "bias": ("d_model",)},
    latex=lambda d_model, eps: (
        rf"\mathrm{{Norm}}(x) = \frac{{x - \mu}}{{\sqrt{{\sigma^2 + {eps}}}}} \odot g + b"
    ),
    n_saved=lambda d_model: d_model + 2,  # the token, its mean and its deviation
    saves_input=True,
    code=lambda eps: f"nn.LayerNorm(D_MODEL{'' if eps == NORM_EPS else f', eps={eps}'})",
    classes=(),
    example=Example(
        "nn.LayerNorm",
        r"\bnorm\(",
        N_("Subtracts the mean, divides by the standard deviation."),
        ("norm = nn.LayerNorm(3)", "norm(torch.tensor([[1., 2., 3.], [0., 0., 9.]])).detach()"),
        of=("norm", "LayerNorm"),
    ),
    spread=N_("mean"),
    walk_topic="layernorm",
    walk_words=Paragraph("variants/walk-layernorm"),
    phrase=N_("LayerNorm"),
)
RMS_NORM = Norm(
    name="rmsnorm",
    label=N_("RMSNorm"),
    help=N_("Divide by the root mean square only (Zhang & Sennrich 2019)."),
    source="Zhang & Sennrich 2019",
    layer="torch.nn:RMSNorm",
    parameters={"weight": ("d_model",)},
    latex=lambda d_model, eps: (
        r"\mathrm{Norm}(x) = \frac{x}"
        rf"{{\sqrt{{\frac{{1}}{{{d_model}}}\sum_i x_i^2 + {eps}}}}} \odot g"
    ),
    n_saved=lambda d_model: 2 * d_model + 1,  # on a CPU its steps are taken one by one
    saves_input=False,
    code=lambda eps: f"nn.RMSNorm(D_MODEL, eps={eps})",
    classes=(),
    example=Example(
        "nn.RMSNorm",
        r"\bnorm\(",
        N_("Divides by the root of the mean square."),
        ("norm = nn.RMSNorm(3)", "norm(torch.tensor([[1., 2., 3.], [0., 0., 9.]])).detach()"),
        of=("norm", "RMSNorm"),
    ),
    spread=N_("root mean square"),
    walk_topic="rmsnorm",
    walk_words=Paragraph("variants/walk-rmsnorm"),
    phrase=N_("RMSNorm"),
)
NO_NORM = Norm(
    name="none",
    label=N_("No norm"),
    help=N_("Vectors grow with each block: a mistake worth seeing."),
    source="Vaswani et al. 2017, section 3.1, without the norm",
    layer="torch.nn:Identity",
    parameters={},
    latex=None,
    n_saved=lambda d_model: 0,
    saves_input=False,
    code=None,
    classes=(),
    example=None,
    spread=None,
    walk_topic="no-norm",
    walk_words=Paragraph("variants/walk-no-norm"),
    phrase=N_("no norm"),
)

NORMS = Registry("norm", LAYER_NORM, RMS_NORM, NO_NORM)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalNorm(Variant):
    """is_present: whether there is one, from whether the blocks are pre-norm."""

    is_present: Callable[[bool], bool]


PRE_NORM = FinalNorm(
    name="pre-norm",
    label=N_("After pre-norm blocks"),
    help=N_("Usual: pre-norm blocks end without a norm."),
    source="Xiong et al. 2020; Radford et al. 2019",
    is_present=lambda norm_first: norm_first,
)
ALWAYS = FinalNorm(
    name="always",
    label=N_("Always"),
    help=N_("After pre-norm and post-norm blocks (torch.nn.Transformer)."),
    source="torch.nn.Transformer",
    is_present=lambda norm_first: True,
)
NEVER = FinalNorm(
    name="never",
    label=N_("Never"),
    help=N_("The sums of the blocks are the output."),
    source="study notebooks",
    is_present=lambda norm_first: False,
)

FINAL_NORMS = Registry("final norm", PRE_NORM, ALWAYS, NEVER)
