"""Heads that do nothing: the same for every word of every example in the snapshots.

They attend evenly, or to the same keys whatever the query. One such head is normal: models have
more heads than they need (Michel et al. 2019). A whole layer of them is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.masks import on_examples
from tfm_core.probe.types import Floats, Probe, Snapshot
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run

ALIKE = 0.02
"""Share of the attention that would have to move for a head to be even, or the same for all.

Healthy: 0.1 and more, once the model has left guessing. Ill: 0.005 and less."""


@dataclass(frozen=True, slots=True, eq=False)
class Alikeness:
    """The heads of a module, (H,): the share of attention to move to be even, or constant."""

    even: Floats
    constant: Floats

    @property
    def is_dead(self) -> bool:
        """Whether all heads do nothing."""
        return bool((np.minimum(self.even, self.constant) < ALIKE).all())


def of_snapshot(
    experiment: Experiment, probe: Probe, snapshot: Snapshot
) -> Mapping[str, Alikeness]:
    """Return how alike the attention of each module is, over all examples."""
    found = {}
    for modules in modules_by_kind(experiment).values():
        for module in modules:
            if module in snapshot.attention:
                weights = np.asarray(snapshot.attention[module], np.float32)
                items = probe.items[: len(weights)]
                shape = weights.shape[2:]
                allowed = on_examples(experiment, items, module, snapshot.masks, shape)
                found[module] = alikeness(weights, allowed)
    return found


def alikeness(weights: Floats, may_attend: npt.NDArray[np.bool_]) -> Alikeness:
    """Return how alike heads are. weights: (P, H, Q, K); may_attend: (P, Q, K).

    Queries with a single key are left out; without others, nothing is alike.
    """
    n_keys = may_attend.sum(-1)  # (P, Q)
    chooses = n_keys > 1
    n = int(chooses.sum())
    n_heads = weights.shape[1]
    if not n:
        return Alikeness(np.ones(n_heads), np.ones(n_heads))
    rows = np.asarray(weights.transpose(0, 2, 1, 3)[chooses], np.float64)  # (n, H, K)
    allowed = may_attend[chooses][:, None]  # (n, 1, K)
    even = allowed / allowed.sum(-1, keepdims=True)
    mean = rows.sum(0) / np.maximum(allowed.sum(0), 1)  # (H, K), of those that may see the key
    own = mean * allowed
    own /= np.maximum(own.sum(-1, keepdims=True), 1e-12)
    return Alikeness(_moved(rows, even), _moved(rows, own))


def _moved(rows: Floats, other: Floats) -> Floats:
    """Return the total variation between rows (n, H, K) and others, the mean for each head."""
    return np.asarray(0.5 * np.abs(rows - other).sum(-1).mean(0))


def dead_modules(run: Run, steps: list[int]) -> tuple[int, tuple[str, ...]] | None:
    """Return the modules all of whose heads do nothing now, and since which snapshot.

    steps: of snapshots, ascending; damaged ones are left out.
    """
    since, dead = 0, set[str]()
    for step in steps[::-1]:
        try:
            changed = snapshot_path(run.folder, step).stat().st_mtime_ns
            found = _dead(run.folder, step, changed)
        except (OSError, ValueError):
            continue
        if not dead:
            dead, since = set(found), step
        elif dead <= found:
            since = step
        else:
            break
        if not dead:
            return None
    return (since, tuple(sorted(dead))) if dead else None


@lru_cache(maxsize=1024)
def _dead(folder: Path, step: int, _changed: int) -> frozenset[str]:
    run = Run(folder)
    found = of_snapshot(run.experiment, run.probe(), run.snapshot(step))
    return frozenset(module for module, one in found.items() if one.is_dead)
