"""Optimisers, schedules of the learning rate, and number formats."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimiser(Variant):
    """How gradients become updates.

    torch_class: where its class is; it takes parameter groups and lr. settings: those of the config
    that it has besides the learning rate and weight decay; options: what else its class takes, from
    the training's config. memory: what it keeps of each weight that it moves, from torch's name to
    ours. memory_words: what is kept is called. others: who moves what is no hidden matrix; None
    where it moves all itself. usual_rate: a learning rate that suits most models; None where
    presets alone say it. decay: the weight decay to begin with. decay_is_coupled: whether weight
    decay is added to the gradient (L2) and not taken beside it. decay_words: what that means.
    is_scale_free: whether its steps are as long whatever the size of the gradients.
    """

    torch_class: str
    settings: tuple[str, ...]
    options: Callable[[Any], dict[str, Any]]
    memory: Mapping[str, str]
    memory_words: str = field(init=False)
    others: Optimiser | None
    usual_rate: float | None
    decay: float
    decay_is_coupled: bool
    decay_words: str = field(init=False)
    is_scale_free: bool

    def numbers(self, n_parameters: int, n_hidden: int) -> int:
        """Return how many numbers it keeps. n_hidden: parameters in hidden matrices."""
        if self.others is None:
            return len(self.memory) * n_parameters
        rest = n_parameters - n_hidden
        return len(self.memory) * n_hidden + self.others.numbers(rest, 0)

    def mover(self, group: Mapping[str, Any]) -> Optimiser:
        """Return who moves the parameters of a group of its torch class: itself, or ``others``."""
        return self if self.others is None or group["is_hidden"] else self.others


ADAM = Optimiser(
    name="adam",
    source="Kingma & Ba 2015, Algorithm 1",
    torch_class="torch.optim:Adam",
    settings=("beta1", "beta2"),
    options=lambda training: {"betas": (training.beta1, training.beta2), "fused": True},
    memory={"exp_avg": "m", "exp_avg_sq": "v"},
    others=None,
    usual_rate=4e-3,
    decay=0.0,
    decay_is_coupled=True,
    is_scale_free=True,
)


ADAMW = replace(
    ADAM,
    name="adamw",
    source="Loshchilov & Hutter 2019, Algorithm 2",
    torch_class="torch.optim:AdamW",
    decay=0.05,
    decay_is_coupled=False,
)


SGD = Optimiser(
    name="sgd",
    source="Sutskever et al. 2013",
    torch_class="torch.optim:SGD",
    settings=("beta1",),
    options=lambda training: {"momentum": training.beta1, "fused": True},
    memory={"momentum_buffer": "momentum"},
    others=None,
    usual_rate=0.1,  # its steps are as long as the gradients
    decay=0.0,
    decay_is_coupled=True,
    is_scale_free=False,
)

COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
"""Of the quintic: steep at 0, so that small singular values grow quickest (Jordan et al. 2024)."""

ITERATIONS: Final = 5
"""They bring singular values from 0.002 on to between 0.7 and 1.2, which does as well as 1."""

RMS: Final = 0.2
"""Root mean square of a matrix's update over the learning rate: about AdamW's (Liu et al. 2025)."""


MUON = Optimiser(
    name="muon",
    source="Jordan et al. 2024; Liu et al. 2025",
    torch_class="tfm_core.training.muon:Muon",
    settings=("beta1", "beta2"),
    options=lambda training: {"betas": (training.beta1, training.beta2), "fused": True},
    memory={"momentum_buffer": "M"},
    others=ADAMW,
    usual_rate=None,
    decay=ADAMW.decay,
    decay_is_coupled=False,
    is_scale_free=True,
)

OPTIMISERS = Registry("optimiser", ADAMW, ADAM, SGD, MUON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(Variant):
    """share: from step, warm-up steps and total steps, counted from 1, to a share of the peak."""

    share: Callable[[int, int, int], float]


def _done(step: int, warm: int, total: int) -> float:
    return (step - warm) / max(1, total - warm + 1)  # the last step still moves a little


CONSTANT = Schedule(
    name="constant",
    source="Goyal et al. 2017, section 2.2: the warm-up",
    share=lambda step, warm, total: min(1.0, step / warm),
)
COSINE = Schedule(
    name="cosine",
    source="Loshchilov & Hutter 2017, Eq. 5, without restarts",
    share=lambda step, warm, total: (
        step / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * _done(step, warm, total))
    ),
)
LINEAR = Schedule(
    name="linear",
    source="Devlin et al. 2019, appendix A.2",
    share=lambda step, warm, total: step / warm if step < warm else 1.0 - _done(step, warm, total),
)
INVERSE_SQRT = Schedule(
    name="inverse-sqrt",
    source="Vaswani et al. 2017, section 5.3, with its peak at the learning rate",
    share=lambda step, warm, total: min(step / warm, math.sqrt(warm / step)),
)

_COOLING = 0.2  # share of the steps, as in Hägele et al. 2024, section 3


def _until_cooled(step: int, warm: int, total: int) -> float:
    remaining = (total + 1 - step) / (max(1, round(_COOLING * total)) + 1)
    return min(step / warm, 1.0, remaining)


WSD = Schedule(
    name="wsd",
    source="Hu et al. 2024 (MiniCPM), section 4; Hägele et al. 2024, section 3, linear",
    share=_until_cooled,
)

SCHEDULES = Registry("schedule", CONSTANT, COSINE, LINEAR, WSD, INVERSE_SQRT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision(Variant):
    """autocast: torch's name of the type in which matrix products run, None where that is fp32.

    scales_loss: whether small gradients would become zero without loss scaling. n_bytes: of one
    activation. tolerance: the largest share of the largest output by which rounding may move one,
    over a few layers.
    """

    autocast: str | None
    scales_loss: bool
    n_bytes: int
    tolerance: float
    is_for_gpus: bool


FP32 = Precision(
    name="fp32",
    source="IEEE 754",
    autocast=None,
    scales_loss=False,
    n_bytes=4,
    tolerance=0.0,
    is_for_gpus=False,
)
BF16 = Precision(
    name="bf16",
    source="Kalamkar et al. 2019",
    autocast="bfloat16",
    scales_loss=False,
    n_bytes=2,
    tolerance=0.1,
    is_for_gpus=False,
)
FP16 = Precision(
    name="fp16",
    source="Micikevicius et al. 2018",
    autocast="float16",
    scales_loss=True,
    n_bytes=2,
    tolerance=0.02,
    is_for_gpus=True,
)

PRECISIONS = Registry("precision", FP32, BF16, FP16)
