"""The activations of the feed-forward layer: their curves, and a run's own inputs to them.

The slope is autograd's; the inputs are those of the run's probe. torch is imported late.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.config import BlockConfig
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import checkpoint_mark, model_of
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.record import resolve

if TYPE_CHECKING:
    from torch import Tensor

LOW, HIGH, POINTS = -4.0, 4.0, 321
BINS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The inputs of the activation of one layer.

    shares: (BINS,), in equal bins from LOW to HIGH, outliers at the ends; below: the share below 0;
    slope: the mean slope, which multiplies the gradient.
    """

    layer: str
    n: int
    shares: Floats
    below: float
    slope: float


def curve(name: str) -> tuple[Floats, Floats, Floats]:
    """Return inputs u of an activation, its values and its slope there, each (n,).

    Of a gated one, of what bends its gate.
    """
    import torch

    u = torch.linspace(LOW, HIGH, POINTS, requires_grad=True)
    value: Tensor = resolve(ACTIVATIONS[name].function)(u)
    (slope,) = torch.autograd.grad(value.sum(), u)
    return u.detach().numpy(), value.detach().numpy(), slope.numpy()


def edges() -> Floats:
    """Return the edges (BINS + 1,) of the bins."""
    return np.linspace(LOW, HIGH, BINS + 1)


def given(run: Run) -> list[Given]:
    """Return the inputs of each layer's activation, over the run's probe. Raises StudentError."""
    return list(_given(run.folder, checkpoint_mark(run)))


@lru_cache(maxsize=8)
def _given(folder: Path, mark: int) -> tuple[Given, ...]:
    import torch

    from tfm_core.layers.feed_forward import FeedForward

    run = Run(folder)
    model, _step = model_of(run)
    layers = {name: one for name, one in model.named_modules() if isinstance(one, FeedForward)}
    config = run.experiment.model_as(BlockConfig, N_("This model has no feed-forward layer."))
    if not layers:
        raise StudentError("This model has no feed-forward layer.")
    seen: dict[str, list[Tensor]] = {name: [] for name in layers}
    probe = run.probe()
    with ExitStack() as undo, torch.no_grad():
        for name, one in layers.items():

            def keep(_module: Any, _inputs: Any, output: Tensor, name: str = name) -> None:
                seen[name].append(output.flatten())

            bent = one.up if one.gate is None else one.gate  # the matrix before the activation
            undo.enter_context(bent.register_forward_hook(keep))
        for index, item in enumerate(probe.items):
            picture = None if probe.images is None else probe.images[index]
            model(*inputs_of(run, item, picture))
    activation = resolve(ACTIVATIONS[config.activation].function)
    return tuple(_summed(name, torch.cat(parts), activation) for name, parts in seen.items())


def _summed(name: str, u: Tensor, activation: Any) -> Given:
    import torch

    u = u.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(activation(u).sum(), u)
    numbers = u.detach().numpy()
    counts, _edges = np.histogram(np.clip(numbers, LOW, HIGH), edges())
    return Given(
        name.replace(".feed_forward", ""),
        len(numbers),
        counts / len(numbers),
        float((numbers < 0).mean()),
        float(slope.mean()),
    )
