"""Which keys each query of an example may attend to: the masks recorded with the maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfm_core.choices.config import Experiment
from tfm_core.probe.labels import MapAxes, axes, modules_by_kind
from tfm_core.probe.types import Array, Bools, Snapshot
from tfm_core.sentences import Paragraph, StudentError


def on_examples(
    experiment: Experiment,
    items: Sequence[Mapping[str, Any]],
    module: str,
    masks: Mapping[str, Array],
    shape: tuple[int, int],
) -> Bools:
    """Return bool (P, Q, K), True = may attend, of examples padded to ``shape``.

    masks: of a snapshot. Raises StudentError for an example larger than ``shape``.
    """
    allowed = np.zeros((len(items), *shape), np.bool_)
    for index, item in enumerate(items):
        rows, columns = axes_within(experiment, item, module, shape).shape
        allowed[index, :rows, :columns] = cut(masks[module], index, (rows, columns))
    return allowed


Maps = tuple[str, Sequence[Mapping[str, Any]], Array, Bools]
"""Maps of one module: its name, P examples, weights (P, H, Q, K) and where each may attend."""


def recorded(
    experiment: Experiment, examples: Sequence[Mapping[str, Any]], snapshot: Snapshot
) -> Iterator[Maps]:
    """Yield the maps of a snapshot on the examples of its probe, kind by kind, layer by layer.

    Raises StudentError where an example is larger than its map.
    """
    for modules in modules_by_kind(experiment).values():
        for module in modules:
            if (weights := snapshot.attention.get(module)) is not None:
                items, shape = examples[: len(weights)], weights.shape[2:]
                allowed = on_examples(experiment, items, module, snapshot.masks, shape)
                yield module, items, weights, allowed


def axes_within(
    experiment: Experiment, item: Mapping[str, Any], module: str, shape: Sequence[int]
) -> MapAxes:
    """Return the axes of an example. Raises StudentError if they exceed a map of ``shape``."""
    found = axes(experiment, item, module)
    (rows, columns), (n_query, n_key) = found.shape, shape
    if rows > n_query or columns > n_key:
        values: dict[str, Any] = {
            "rows": rows,
            "columns": columns,
            "n_query": n_query,
            "n_key": n_key,
        }
        raise StudentError(Paragraph("probe/map-too-small", **values))
    return found


def cut(mask: Array, index: int, shape: tuple[int, int]) -> Bools:
    """Return bool (Q, K) of one example. mask: broadcastable to (P, H, Q, K)."""
    rows, columns = shape
    one = mask[index if len(mask) > 1 else 0].any(0)  # (Q or 1, K or 1)
    return np.broadcast_to(one[:rows, :columns], shape)
