"""The norms, which keep every token's vector in range, and when one follows the last block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tfm_core.choices.variants.record import Example, Registry, Variant
from tfm_core.sentences import N_

NORM_EPS = 1e-5
"""What nn.LayerNorm takes where no epsilon is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm(Variant):
    """layer: called with d_model and ``eps``. latex: the equation, from d_model and epsilon.

    parameters: the shape of each trained tensor, as formulas. n_saved: numbers that PyTorch saves
    of a token for the backward pass, from d_model, besides the result; saves_input: whether its
    input is among them. code: the expression that makes it in a generated file, from epsilon.
    spread: the statistic over the numbers of a token. walk: its paragraph in the walk, example: its
    call there. phrase: its name in the name of a run. Without a norm there is no equation, code or
    spread.
    """

    layer: str
    parameters: Mapping[str, tuple[str, ...]]
    latex: Callable[[int, str], str] | None
    n_saved: Callable[[int], int]
    saves_input: bool
    code: Callable[[float], str] | None
    example: Example | None
    spread: str | None = field(init=False)
    walk: str = field(init=False)
    phrase: str = field(init=False)


LAYER_NORM = Norm(
    name="layernorm",
    source="Ba et al. 2016",
    layer="torch.nn:LayerNorm",
    parameters={"weight": ("d_model",), "bias": ("d_model",)},
    latex=lambda d_model, eps: (
        rf"\mathrm{{Norm}}(x) = \frac{{x - \mu}}{{\sqrt{{\sigma^2 + {eps}}}}} \odot g + b"
    ),
    n_saved=lambda d_model: d_model + 2,  # the token, its mean and its deviation
    saves_input=True,
    code=lambda eps: f"nn.LayerNorm(D_MODEL{'' if eps == NORM_EPS else f', eps={eps}'})",
    example=Example(
        "nn.LayerNorm",
        r"\bnorm\(",
        N_("Subtracts the mean, divides by the standard deviation."),
        ("norm = nn.LayerNorm(3)", "norm(torch.tensor([[1., 2., 3.], [0., 0., 9.]])).detach()"),
        of=("norm", "LayerNorm"),
    ),
)
RMS_NORM = Norm(
    name="rmsnorm",
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
    example=Example(
        "nn.RMSNorm",
        r"\bnorm\(",
        N_("Divides by the root of the mean square."),
        ("norm = nn.RMSNorm(3)", "norm(torch.tensor([[1., 2., 3.], [0., 0., 9.]])).detach()"),
        of=("norm", "RMSNorm"),
    ),
)
NO_NORM = Norm(
    name="none",
    source="Vaswani et al. 2017, section 3.1, without the norm",
    layer="torch.nn:Identity",
    parameters={},
    latex=None,
    n_saved=lambda d_model: 0,
    saves_input=False,
    code=None,
    example=None,
)

NORMS = Registry("norm", LAYER_NORM, RMS_NORM, NO_NORM)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalNorm(Variant):
    """is_present: whether there is one, from whether the blocks are pre-norm."""

    is_present: Callable[[bool], bool]


PRE_NORM = FinalNorm(
    name="pre-norm",
    source="Xiong et al. 2020; Radford et al. 2019",
    is_present=lambda norm_first: norm_first,
)
ALWAYS = FinalNorm(
    name="always",
    source="torch.nn.Transformer",
    is_present=lambda norm_first: True,
)
NEVER = FinalNorm(
    name="never",
    source="study notebooks",
    is_present=lambda norm_first: False,
)

FINAL_NORMS = Registry("final norm", PRE_NORM, ALWAYS, NEVER)
