"""What an optimiser says of itself, and one line of its arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tfm_core.variants.record import Variant


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """One line of the arithmetic: a name, its formula, and the number."""

    name: str
    formula: str
    value: Any


Arithmetic = Callable[
    [Any, Any, Mapping[str, Any], Mapping[str, Any]], "tuple[list[UpdateLine], Any]"
]
"""From weight, gradient, memory and options to the lines and the new weight, of a whole tensor.
memory: what torch keeps under its own names, empty before the first step. options: lr, weight_decay
and what else torch's class takes, under its own names."""


class Betas(Protocol):
    """What an optimiser may read of the training's config."""

    @property
    def beta1(self) -> float:
        """Memory of the mean gradient."""
        ...

    @property
    def beta2(self) -> float:
        """Memory of the squared gradient."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimiser(Variant):
    """How gradients become updates.

    torch_class: where its class is; it takes parameter groups and lr. settings: those of the config
    that it has beside the learning rate and weight decay; options: what else its class takes, from
    the config. arithmetic: its update, then the functions of ours which that calls, and those
    of ``others``.
    memory: what it keeps of each weight that it moves, from torch's name to the arithmetic's.
    memory_words: what is kept is called. others: who moves what is no hidden matrix; None where it
    moves all itself. usual_rate: a learning rate that suits most models; None where presets alone
    say it. decay: the weight decay to begin with. decay_is_coupled: whether weight decay
    is added to the gradient (L2) and not taken beside it. decay_words: what that means.
    is_scale_free: whether its steps are as long whatever the size of the gradients.
    """

    torch_class: str
    settings: tuple[str, ...]
    options: Callable[[Betas], dict[str, Any]]
    arithmetic: tuple[Callable[..., Any], ...]
    memory: Mapping[str, str]
    memory_words: str
    others: Optimiser | None
    usual_rate: float | None
    decay: float
    decay_is_coupled: bool
    decay_words: str
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

    @property
    def update(self) -> Arithmetic:
        """Its arithmetic in one call."""
        return self.arithmetic[0]
