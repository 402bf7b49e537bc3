"""Which keys each query of an example may attend to: the masks that a model applied.

They are recorded with the maps; for snapshots of older releases they come from the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import Experiment
from tfm_core.probe.labels import MapAxes, axes
from tfm_core.probe.types import Array
from tfm_core.sentences import Paragraph, StudentError

Bools = npt.NDArray[np.bool_]


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
    mask = mask_of(experiment, items, module, masks)
    allowed = np.zeros((len(items), *shape), np.bool_)
    for index, item in enumerate(items):
        rows, columns = axes_within(experiment, item, module, shape).shape
        allowed[index, :rows, :columns] = cut(mask, index, (rows, columns))
    return allowed


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


def mask_of(
    experiment: Experiment,
    items: Sequence[Mapping[str, Any]],
    module: str,
    masks: Mapping[str, Array],
) -> Array:
    """Return the mask of a module, from ``masks`` or from the model; see ``Snapshot.masks``."""
    found = masks.get(module)
    if found is not None:
        return found
    lengths = tuple((len(item.get("src", ())), len(item.get("tgt", ()))) for item in items)
    return _of_model(experiment, lengths)[module]


def cut(mask: Array, index: int, shape: tuple[int, int]) -> Bools:
    """Return bool (Q, K) of one example. mask: broadcastable to (P, H, Q, K)."""
    rows, columns = shape
    one = mask[index if len(mask) > 1 else 0].any(0)  # (Q or 1, K or 1)
    return np.broadcast_to(one[:rows, :columns], shape)


@lru_cache(maxsize=64)
def _of_model(experiment: Experiment, lengths: tuple[tuple[int, int], ...]) -> Mapping[str, Array]:
    """Return the masks that the model applies to examples of these lengths."""
    import torch

    from tfm_core.data.vocabulary import BOS
    from tfm_core.probe.capture import capture
    from tfm_core.training.setup import new_model

    def ids(sizes: Sequence[int]) -> torch.Tensor:
        rows = [torch.full((size,), BOS) for size in sizes]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    sources, targets = zip(*lengths, strict=True)
    inputs = [ids(sources), ids([n + 1 for n in targets])]
    if shape := experiment.task.picture_shape:
        images = torch.zeros(len(lengths), *shape)
        inputs = [images, *inputs[1:]] if experiment.task.describes_pictures else [images]
    model = new_model(experiment)
    with capture(model, only={"weights", "mask"}) as cache:
        model(*inputs)
    return cache.masks()
