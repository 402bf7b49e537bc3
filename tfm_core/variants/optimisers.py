"""The optimisers: Adam, AdamW, SGD with momentum, and Muon for hidden matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.record import Registry, Variant


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
    that it has besides the learning rate and weight decay; options: what else its class takes, from
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


def adam(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of Adam (Kingma & Ba 2015, Algorithm 1)."""
    beta1, beta2 = options["betas"]
    m, v = memory.get("exp_avg", 0.0), memory.get("exp_avg_sq", 0.0)
    t = int(memory.get("step", 0)) + 1
    gradient = gradient + options["weight_decay"] * weight
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    step = options["lr"] * m_hat / (v_hat**0.5 + options["eps"])
    lines = [
        UpdateLine("g + decay", "g + weight decay · w", gradient),
        UpdateLine("m", "β₁ · m + (1 - β₁) · g", m),
        UpdateLine("v", "β₂ · v + (1 - β₂) · g²", v),
        UpdateLine("m̂", f"m / (1 - β₁^{t})", m_hat),
        UpdateLine("v̂", f"v / (1 - β₂^{t})", v_hat),
        UpdateLine("update", "lr · m̂ / (√v̂ + ε)", step),
    ]
    return lines, weight - step


ADAM = Optimiser(
    name="adam",
    label=N_("Adam"),
    help=N_("The original paper's optimiser."),
    source="Kingma & Ba 2015, Algorithm 1",
    torch_class="torch.optim:Adam",
    settings=("beta1", "beta2"),
    options=lambda training: {"betas": (training.beta1, training.beta2), "fused": True},
    arithmetic=(adam,),
    memory={"exp_avg": "m", "exp_avg_sq": "v"},
    memory_words=N_("Adam's moments"),
    others=None,
    usual_rate=4e-3,
    decay=0.0,
    decay_is_coupled=True,
    decay_words=Paragraph("variants/adam-decay"),
    is_scale_free=True,
)


def adamw(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of AdamW (Loshchilov & Hutter 2019, Algorithm 2)."""
    pull = options["lr"] * options["weight_decay"] * weight
    lines, after = adam(weight, gradient, memory, {**options, "weight_decay": 0.0})
    return [UpdateLine("decay", "lr · weight decay · w", pull), *lines[1:]], after - pull


ADAMW = replace(
    ADAM,
    name="adamw",
    label=N_("AdamW"),
    help=N_("Adam with separate weight decay: the usual choice."),
    source="Loshchilov & Hutter 2019, Algorithm 2",
    torch_class="torch.optim:AdamW",
    arithmetic=(adamw, adam),
    decay=0.05,
    decay_is_coupled=False,
    decay_words=N_("Each step shrinks a matrix by learning rate × weight decay of itself."),
)


def sgd(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of SGD with momentum, as PyTorch writes it."""
    gradient = gradient + options["weight_decay"] * weight
    moved = options["momentum"] * memory.get("momentum_buffer", 0.0) + gradient
    step = options["lr"] * moved
    lines = [
        UpdateLine("g + decay", "g + weight decay · w", gradient),
        UpdateLine("momentum", "β₁ · momentum + g", moved),
        UpdateLine("update", "lr · momentum", step),
    ]
    return lines, weight - step


SGD = Optimiser(
    name="sgd",
    label=N_("SGD"),
    help=N_("Gradient descent with momentum; slow for Transformers."),
    source="Sutskever et al. 2013",
    torch_class="torch.optim:SGD",
    settings=("beta1",),
    options=lambda training: {"momentum": training.beta1, "fused": True},
    arithmetic=(sgd,),
    memory={"momentum_buffer": "momentum"},
    memory_words=N_("the momentum of SGD"),
    others=None,
    usual_rate=0.1,  # its steps are as long as the gradients
    decay=0.0,
    decay_is_coupled=True,
    decay_words=Paragraph("variants/sgd-decay"),
    is_scale_free=False,
)

COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
"""Of the quintic: steep at 0, so that small singular values grow quickest (Jordan et al. 2024)."""

ITERATIONS: Final = 5
"""They bring singular values from 0.002 on to between 0.7 and 1.2, which does as well as 1."""

ITERATED: Final = "X"
"""The name of what the iteration changes, in the lines of the arithmetic."""

RMS: Final = 0.2
"""Root mean square of a matrix's update over the learning rate: about AdamW's (Liu et al. 2025)."""


def muon(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weights of Muon; a matrix, or several in the last two axes."""
    beta, (a, b, c) = options["betas"][0], COEFFICIENTS
    momentum = beta * memory.get("momentum_buffer", 0.0) + (1 - beta) * gradient
    ahead = (1 - beta) * gradient + beta * momentum
    norm = (ahead * ahead).sum((-2, -1), keepdims=True) ** 0.5 + 1e-30
    x = ahead / norm
    pull = options["lr"] * options["weight_decay"] * weight
    lines = [
        UpdateLine("decay", "lr · weight decay · w", pull),
        UpdateLine("M", "β₁ · M + (1 - β₁) · g", momentum),
        UpdateLine("N", "(1 - β₁) · g + β₁ · M", ahead),
        UpdateLine("‖N‖", "√ of the sum of the squares of the whole matrix N", norm),
        UpdateLine(ITERATED, "N / ‖N‖", x),
    ]
    for _ in range(ITERATIONS):  # Newton-Schulz
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
        lines.append(UpdateLine(ITERATED, f"{a} · X - {-b} · XXᵀX + {c} · XXᵀXXᵀX", x))
    scale = RMS * max(weight.shape[-2:]) ** 0.5
    step = options["lr"] * scale * x
    lines.append(UpdateLine("update", f"lr · {RMS} · √{max(weight.shape[-2:])} · X", step))
    return lines, weight - pull - step


MUON = Optimiser(
    name="muon",
    label=N_("Muon"),
    help=Paragraph("variants/muon"),
    source="Jordan et al. 2024; Liu et al. 2025",
    torch_class="tfm_core.training.muon:Muon",
    settings=("beta1", "beta2"),
    options=lambda training: {"betas": (training.beta1, training.beta2), "fused": True},
    arithmetic=(muon, *ADAMW.arithmetic),
    memory={"momentum_buffer": "M"},
    memory_words=N_("momentum of hidden matrices, AdamW's moments of the rest"),
    others=ADAMW,
    usual_rate=None,
    decay=ADAMW.decay,
    decay_is_coupled=False,
    decay_words=ADAMW.decay_words,
    is_scale_free=True,
)

OPTIMISERS = Registry("optimiser", ADAMW, ADAM, SGD, MUON)
