"""Which token goes to which expert, in the snapshots of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tfm_core.choices.config import Experiment
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.labels import STACKS, axes
from tfm_core.probe.types import Floats, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

LOADS = Columns(
    step=Column(N_("step"), ","),
    value=Column(N_("share of choices"), ".1%", {"tickformat": ".0%", "rangemode": "tozero"}),
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
        raise StudentError("This snapshot holds fewer tokens than the example has.")
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
