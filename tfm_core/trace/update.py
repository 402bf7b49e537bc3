"""The optimiser's own arithmetic of one weight, and layer and step as modules and as functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from textwrap import dedent
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from tfm_core.choices.variants.training import COEFFICIENTS, ITERATIONS, RMS
from tfm_core.inspect.syntax import source
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_
from tfm_core.trace.learning import StepTaken, clip_scale, copied, rows, step_randomness
from tfm_core.training.loop import Trainer

ITERATED: Final = "X"
"""The name of what the iteration changes, in the lines of the arithmetic."""


@dataclass(frozen=True, slots=True)
class UpdateLine:
    """One line of the arithmetic: a name, its formula, and the number."""

    name: str
    formula: str
    value: Any


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


def adamw(
    weight: Any, gradient: Any, memory: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[list[UpdateLine], Any]:
    """Return the lines and the new weight of AdamW (Loshchilov & Hutter 2019, Algorithm 2)."""
    pull = options["lr"] * options["weight_decay"] * weight
    lines, after = adam(weight, gradient, memory, {**options, "weight_decay": 0.0})
    return [UpdateLine("decay", "lr · weight decay · w", pull), *lines[1:]], after - pull


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


ARITHMETIC: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "adam": (adam,),
    "adamw": (adamw, adam),
    "sgd": (sgd,),
    "muon": (muon, adamw, adam),
}
"""The update of each optimiser, then the functions of ours which that calls, and those of
``others``.

They take weight, gradient, memory and options of a whole tensor. memory: what torch keeps under its
own names, empty before the first step. options: lr, weight_decay and what else torch's class takes.
"""


def one_weight(
    taken: StepTaken, name: str, index: tuple[int, ...]
) -> tuple[list[UpdateLine], float, float]:
    """Return the lines for one weight, its value by hand, and the optimiser's.

    The arithmetic by hand is in double precision.
    """
    lines = _lines(taken, name)
    numbers = [replace(line, value=_number(line.value, index)) for line in lines]
    moved = taken.after.model.get_parameter(name)
    return numbers, numbers[-1].value, float(moved.detach()[index])


def largest(taken: StepTaken) -> str:
    """Return the parameter with the largest gradient, of those that the optimiser itself moves."""

    def size(name: str) -> float:
        is_its_own = taken.mover(name) is taken.optimiser
        return float(taken.gradients[name].abs().max()) if is_its_own else 0.0

    return max(taken.gradients, key=size)


def singular_values(taken: StepTaken, name: str, index: tuple[int, ...]) -> Tensor | None:
    """Return (iterations + 1, n): the singular values of the matrix that is made orthogonal.

    Of the one in which a weight stands; before the first iteration and after each. None where the
    optimiser makes none orthogonal.
    """
    found = [line.value for line in _lines(taken, name) if line.name == ITERATED]
    return torch.linalg.svdvals(torch.stack([x[index[:-2]] for x in found])) if found else None


def orthogonality(values: Floats) -> dict[str, float]:
    """Return how near (iterations + 1, n) singular values come to 1.

    n: how many there are; k: iterations. share, after: of the largest in the sum of the squares,
    before and after; near: how many end about 1. rms: of the update over the learning rate.
    """
    first, last = values[0], values[-1]
    return {
        "n": len(first),
        "k": len(values) - 1,
        "share": first[0] ** 2 / (first**2).sum() if first.any() else 0.0,
        "after": last[0] ** 2 / (last**2).sum() if last.any() else 0.0,
        "near": int(((last > 0.5) & (last < 1.3)).sum()),
        "rms": RMS * math.sqrt((last**2).sum() / len(last)),
    }


def _lines(taken: StepTaken, name: str) -> list[UpdateLine]:
    """Return the lines of a whole parameter."""
    options, mover = taken.options(name), taken.mover(name)
    weight = taken.before.model.get_parameter(name).detach().double()
    raw = taken.gradients[name].double()
    gradient = raw * taken.scale
    memory = {key: value.double() for key, value in taken.memory(name).items()}
    lines = [UpdateLine("w", N_("before"), weight), UpdateLine("g", N_("gradient"), raw)]
    if taken.scale != 1.0:
        lines.append(UpdateLine("g", N_("clipped: · {scale:.4g}", scale=taken.scale), gradient))
    lines += [
        UpdateLine(shown, N_("before"), memory.get(key, 0.0)) for key, shown in mover.memory.items()
    ]
    more, after = ARITHMETIC[mover.name][0](weight, gradient, memory, options)
    return [*lines, *more, UpdateLine("w", N_("after"), after)]


def _number(value: Tensor | float, index: tuple[int, ...]) -> float:
    """Return the number of one weight, or the one that a matrix has in all."""
    if not isinstance(value, Tensor):
        return value
    places = zip(index, value.shape, strict=False)
    return float(value[tuple(at if size > 1 else 0 for at, size in places)])


class ModelWithLoss(nn.Module):
    """Model and loss as one function of a batch."""

    def __init__(self, trainer: Trainer) -> None:
        """Hold the trainer's model as ``model``."""
        super().__init__()
        self.model, self.objective = trainer.model, trainer.objective

    def forward(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """Return the mean loss of the examples ``batch`` (B,)."""
        return self.objective.loss_and_metrics(self.model, batch, generator).loss


def with_modules(trainer: Trainer, batch: Tensor, generator: torch.Generator) -> Tensor:
    """Weights live in the module; ``backward`` leaves gradients there for the optimiser."""
    trainer.optimizer.zero_grad(set_to_none=True)
    loss = trainer.objective.loss_and_metrics(trainer.model, batch, generator).loss
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(trainer.parameters, trainer.experiment.trained.clip_norm or torch.inf)
    trainer.optimizer.step()
    return loss


def with_functions(
    trainer: Trainer, batch: Tensor, generator: torch.Generator
) -> tuple[Tensor, dict[str, Tensor]]:
    """Weights are plain tensors, handed in; ``autograd.grad`` returns what it finds."""
    weights = {
        f"model.{name}": one.detach().clone().requires_grad_()
        for name, one in trainer.model.named_parameters()
    }
    loss = functional_call(ModelWithLoss(trainer), weights, (batch, generator))
    in_order = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    gradients = {
        name.removeprefix("model."): torch.zeros_like(one) if gradient is None else gradient
        for (name, one), gradient in zip(weights.items(), in_order, strict=True)
    }
    return loss, gradients


def two_ways(taken: StepTaken) -> dict[str, float]:
    """Take a step once more in both ways, and compare.

    one, other: the losses with modules and with functions; gradient, weight: the largest
    differences of gradients, after clipping, and of new weights.
    """
    trainer = taken.before
    copy = copied(trainer)
    for group in copy.optimizer.param_groups:
        group["lr"] = taken.rate
    with step_randomness(trainer) as generator:
        module_loss = with_modules(copy, rows(trainer), generator)
    with step_randomness(trainer) as generator:
        # on a copy: it leaves tied weights as plain tensors
        loss, by_name = with_functions(copied(trainer), rows(trainer), generator)
    _norm, scale = clip_scale(by_name, trainer.experiment.trained.clip_norm)
    gradients, weights = [], []
    for name, moved in copy.model.named_parameters():
        clipped = by_name[name] * scale
        theirs = torch.zeros_like(moved) if moved.grad is None else moved.grad
        gradients.append(float((clipped - theirs).abs().max()))
        weight, options = trainer.model.get_parameter(name).detach(), taken.options(name)
        update = ARITHMETIC[taken.mover(name).name][0]
        moved_here = update(weight, clipped, taken.memory(name), options)[1]
        weights.append(float((moved_here - moved.detach()).abs().max()))
    return {
        "one": float(module_loss.detach()),
        "other": float(loss.detach()),
        "gradient": max(gradients),
        "weight": max(weights),
    }


def code(function: Callable[..., object]) -> str:
    """Return the code of a function, without comments for the type checker."""
    return re.sub(r"  # type: ignore.*", "", source(function))


MODULES = dedent("""\
    import torch
    from torch import nn

    torch.manual_seed(7)
    x = torch.randn(2, 4)  # two examples, four numbers each

    linear = nn.Linear(4, 3)  # an object that holds its weights
    relu = nn.ReLU()  # an object that holds nothing
    y = relu(linear(x))
    y.sum().backward()
    print(y)

    for name, value in linear.named_parameters():
        print(name, tuple(value.shape))
    print(list(relu.parameters()))
    """)
FUNCTIONS = dedent("""\
    import torch.nn.functional as F

    # the same weights as plain tensors, kept by whoever calls
    weight = linear.weight.detach().clone().requires_grad_()
    bias = linear.bias.detach().clone().requires_grad_()
    z = F.relu(F.linear(x, weight, bias))
    z.sum().backward()
    print(z)

    print("same output:", torch.equal(y, z))
    print("same gradient:", torch.equal(linear.weight.grad, weight.grad))
    print("as by hand:", torch.allclose(z, (x @ weight.T + bias).clamp(min=0)))
    """)


@lru_cache(maxsize=1)
def one_layer() -> list[tuple[str, str, str]]:
    """Run both scripts, the second behind the first, as in one notebook.

    Return of each what it shows, its code, and what it printed.
    """
    names: dict[str, object] = {}
    titles = (
        N_("**`nn.Linear`, `nn.ReLU`**: modules hold their parameters."),
        N_("**`F.linear`, `F.relu`**: functions take theirs as arguments."),
    )
    made: list[tuple[str, str, str]] = []
    with torch.random.fork_rng(devices=[]):
        for title, code in zip(titles, (MODULES, FUNCTIONS), strict=True):
            lines: list[str] = []

            def keep(*values: object, to: list[str] = lines) -> None:
                to.append(" ".join(map(str, values)))

            names["print"] = keep  # a page is drawn in a thread: nothing else may be redirected
            exec(code, names)
            made.append((title, code, "\n".join(lines)))
    return made
