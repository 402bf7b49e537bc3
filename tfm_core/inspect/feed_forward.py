"""The feed-forward layer: activations, a run's own inputs to them, and which token goes where.

The slope is autograd's; inputs and experts' tokens are those of the run's probe. torch is imported
late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tfm_core.choices.config import BlockConfig, Experiment
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.record import resolve
from tfm_core.inspect.attention.trained import cached_by_weights, inputs_of, model_of
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.labels import STACKS, axes
from tfm_core.probe.types import Floats, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor


LOW, HIGH, POINTS = -4.0, 4.0, 321
BINS = 64


CURVES = Columns(
    u=Column(N_("u, the value before the activation"), ".2f"),
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


@cached_by_weights
def given(run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the inputs of each layer's activation, over the run's probe. Raises StudentError.

    First layer, n, the share below 0, and the mean slope; then the share in equal bins around u,
    a column a layer, outliers at the ends.
    """
    import torch

    from tfm_core.layers.feed_forward import FeedForward

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
        below = float((u < 0).double().mean())
        u = u.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(activation(u).sum(), u)
        rows.append((layer, len(u), below, float(slope.mean())))
        shares[layer] = counts / len(u)
    return pd.DataFrame(rows, columns=["layer", "n", "below", "slope"]), CURVES.table(shares)


LOADS = Columns(
    step=Column(N_("step"), ","),
    value=Column(N_("share of routed tokens"), ".1%", {"tickformat": ".0%", "rangemode": "tozero"}),
)


def layers(snapshot: Snapshot) -> dict[str, str]:
    """Return the layers with experts, each module's name with its own in words."""
    named: dict[str, str] = {}
    for module in sorted(snapshot.routing, key=_order):
        stack, _layers, number, _name = module.split(".")
        named[module] = N_("{stack} block {n}", stack=STACKS[stack], n=int(number) + 1)
    return named


def _order(module: str) -> tuple[bool, int]:
    stack, _layers, number, _name = module.split(".")
    return stack == "decoder", int(number)


def routed(
    experiment: Experiment, item: Mapping[str, Any], gates: Floats, module: str
) -> tuple[tuple[str, ...], Floats]:
    """Return the tokens of an example, T, and the share of each expert in them, (T, E).

    gates: (T, E) with padding. Raises StudentError where it holds fewer tokens than the example.
    """
    tokens = axes(experiment, item, f"{module.rpartition('.')[0]}.self_attention").query
    if len(tokens) > len(gates):
        raise StudentError("This example has more tokens than the snapshot.")
    return tokens, gates[: len(tokens)].astype(np.float32)


def loads(run: Run, module: str, steps: Sequence[int]) -> tuple[pd.DataFrame, int]:
    """Return how the tokens of the probe are spread over a layer's experts, and how many there are.

    step, where it has a snapshot of its experts, and the share of each, "1" the first, in all
    choices, 1 together. Raises ValueError, in a sentence.
    """
    items = run.probe().attended
    rows: list[dict[str, Any]] = []
    n_tokens = 0
    for step in steps:
        gates = run.snapshot(step).routing.get(module)
        if gates is None:
            continue
        own = [
            routed(run.experiment, item, one, module)[1]
            for item, one in zip(items, gates, strict=False)
        ]
        is_chosen = np.concatenate(own) > 0  # (tokens, E)
        shares, n_tokens = is_chosen.sum(0) / max(1, is_chosen.sum()), len(is_chosen)
        rows.append({"step": step, **{str(n): share for n, share in enumerate(shares, 1)}})
    return LOADS.table(rows), n_tokens
