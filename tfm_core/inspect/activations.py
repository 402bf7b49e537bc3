"""The activations of the feed-forward layer: their curves, and a run's own inputs to them.

The slope is autograd's; the inputs are those of the run's probe. torch is imported late.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tfm_core.choices.config import BlockConfig
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.record import resolve
from tfm_core.inspect.attention.trained import checkpoint_mark, inputs_of, model_of
from tfm_core.inspect.tables import Column, Columns
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

LOW, HIGH, POINTS = -4.0, 4.0, 321
BINS = 64


CURVES = Columns(
    u=Column(N_("u, a hidden value before it"), ".2f"),
    output=Column(N_("output"), ".3f"),
    slope=Column(N_("slope"), ".3f"),
    value=Column(N_("share of values"), ".2%", {"tickformat": ".1%", "rangemode": "tozero"}),
)


def curve(name: str) -> pd.DataFrame:
    """Return u, output, slope of an activation, and its name; of a gated one, of its gate's.

    The slope is what a gradient is multiplied by.
    """
    import torch

    u = torch.linspace(LOW, HIGH, POINTS, requires_grad=True)
    output: Tensor = resolve(ACTIVATIONS[name].function)(u)
    (slope,) = torch.autograd.grad(output.sum(), u)
    columns = {"u": u.detach(), "output": output.detach(), "slope": slope}
    return CURVES.table({**{key: one.numpy() for key, one in columns.items()}, "name": name})


def given(run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the inputs of each layer's activation, over the run's probe. Raises StudentError.

    First layer, n, the share below 0, and the mean slope; then the share in equal bins around u,
    a column a layer, outliers at the ends.
    """
    return _given(run.folder, checkpoint_mark(run))


@lru_cache(maxsize=8)
def _given(folder: Path, mark: int) -> tuple[pd.DataFrame, pd.DataFrame]:
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
    edges = np.linspace(LOW, HIGH, BINS + 1)
    rows, shares = [], {"u": (edges[1:] + edges[:-1]) / 2}
    for name, parts in seen.items():
        u, layer = torch.cat(parts), name.replace(".feed_forward", "")
        counts, _edges = np.histogram(np.clip(u.numpy(), LOW, HIGH), edges)
        rows.append((layer, len(u), float((u < 0).double().mean()), _slope(u, activation)))
        shares[layer] = counts / len(u)
    return pd.DataFrame(rows, columns=["layer", "n", "below", "slope"]), CURVES.table(shares)


def _slope(u: Tensor, activation: Any) -> float:
    """Return the mean slope at some inputs."""
    import torch

    u = u.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(activation(u).sum(), u)
    return float(slope.mean())
