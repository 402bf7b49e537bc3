"""The optimisers: Adam, AdamW, SGD with momentum, and Muon for hidden matrices."""

from __future__ import annotations

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
