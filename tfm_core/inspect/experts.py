"""Which token goes to which expert, in the snapshots of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import Experiment
from tfm_core.inspect.diagram.blocks import STACKS
from tfm_core.probe.labels import axes
from tfm_core.probe.types import Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """The tokens of an example, T, and the share of each expert in them, (T, E)."""

    tokens: tuple[str, ...]
    gates: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """How the tokens of all examples are spread over the experts of one layer at a step.

    shares: (E,), of all choices, 1 together; n_tokens: of all examples.
    """

    step: int
    shares: Floats
    n_tokens: int

    @property
    def dead(self) -> tuple[int, ...]:
        """The experts, from 1, that no token passes."""
        return tuple(int(n) + 1 for n in np.flatnonzero(self.shares == 0))


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


def routed(experiment: Experiment, item: Mapping[str, Any], gates: Floats, module: str) -> Routed:
    """Return where the tokens of one example go.

    gates: (T, E) with padding. Raises StudentError where it holds fewer tokens than the example.
    """
    tokens = axes(experiment, item, f"{module.rpartition('.')[0]}.self_attention").query
    if len(tokens) > len(gates):
        raise StudentError("This snapshot holds fewer tokens than the example has.")
    return Routed(tokens, gates[: len(tokens)].astype(np.float32))


def loads(run: Run, module: str, steps: Sequence[int]) -> list[Load]:
    """Return how the tokens of the probe are spread over a layer's experts, step by step.

    Steps without a snapshot of its experts are left out. Raises ValueError, in a sentence.
    """
    items = run.probe().attended
    found = []
    for step in steps:
        gates = run.snapshot(step).routing.get(module)
        if gates is None:
            continue
        own = [
            routed(run.experiment, item, one, module).gates
            for item, one in zip(items, gates, strict=False)
        ]
        is_chosen = np.concatenate(own) > 0  # (tokens, E)
        found.append(Load(step, is_chosen.sum(0) / max(1, is_chosen.sum()), len(is_chosen)))
    return found
