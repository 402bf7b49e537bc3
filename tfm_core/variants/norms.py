"""The norms: what keeps every token's vector in range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant

NORM_EPS = 1e-5
"""What nn.LayerNorm takes where no epsilon is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm(Variant):
    """layer: called with d_model and ``eps``. latex: the equation, from d_model and epsilon.

    n_kept: numbers that PyTorch keeps of a token for the backward pass, from d_model, beside the
    result. code: the expression that makes it in a generated file, from epsilon. spread: what it
    takes over the numbers of a token, in words. walk_topic: its paragraph in the walk. Where
    nothing is normalised there is no equation, no code and no spread.
    """

    layer: str
    latex: Callable[[int, str], str] | None
    n_kept: Callable[[int], int]
    code: Callable[[float], str] | None
    spread: str | None
    walk_topic: str


LAYER_NORM = Norm(
    name="layernorm",
    label=N_("LayerNorm"),
    help=N_("Subtract the mean, divide by the deviation (Ba et al. 2016)."),
    source="Ba et al. 2016",
    layer="torch.nn:LayerNorm",
    latex=lambda d_model, eps: (
        rf"\mathrm{{Norm}}(x) = \frac{{x - \mu}}{{\sqrt{{\sigma^2 + {eps}}}}} \odot g + b"
    ),
    n_kept=lambda d_model: d_model + 2,  # the token, its mean and its deviation
    code=lambda eps: f"nn.LayerNorm(D_MODEL{'' if eps == NORM_EPS else f', eps={eps}'})",
    spread=N_("mean"),
    walk_topic="layernorm",
)
RMS_NORM = Norm(
    name="rmsnorm",
    label=N_("RMSNorm"),
    help=N_("Divide by the root mean square only (Zhang & Sennrich 2019)."),
    source="Zhang & Sennrich 2019",
    layer="torch.nn:RMSNorm",
    latex=lambda d_model, eps: (
        r"\mathrm{Norm}(x) = \frac{x}"
        rf"{{\sqrt{{\frac{{1}}{{{d_model}}}\sum_i x_i^2 + {eps}}}}} \odot g"
    ),
    n_kept=lambda d_model: 2 * d_model + 1,  # on a CPU its steps are taken one by one
    code=lambda eps: f"nn.RMSNorm(D_MODEL, eps={eps})",
    spread=N_("root mean square"),
    walk_topic="rmsnorm",
)
NONE = Norm(
    name="none",
    label=N_("No norm"),
    help=N_(
        "Vectors keep whatever length the sums give them, which grows with each block and each "
        "step: a mistake worth seeing."
    ),
    source="Vaswani et al. 2017, section 3.1, without the norm",
    layer="torch.nn:Identity",
    latex=None,
    n_kept=lambda d_model: 0,
    code=None,
    spread=None,
    walk_topic="no-norm",
)

NORMS = Registry("norm", LAYER_NORM, RMS_NORM, NONE)
