"""Two axes of a tensor of any number of axes, as a map can show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.walk import Seen

HIDDEN = -1e30  # a score below this was masked


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """values: (rows, columns); a masked score is NaN. starts: the first row and column shown."""

    values: npt.NDArray[np.float64]
    row_axis: str
    column_axis: str
    starts: tuple[int, int]
    is_whole_number: bool


def picked_axes(tensor: Seen) -> list[int]:
    """Return the places of the axes that must be fixed before two are left; not those of size 1."""
    return [i for i in range(tensor.value.dim() - 2) if tensor.axes[i] != "1"]


def extent(tensor: Seen) -> tuple[int, int]:
    """Return how many rows and columns a slice has."""
    sizes = (1, 1, *tensor.shape)
    return sizes[-2], sizes[-1]


def cut(
    tensor: Seen, at: Mapping[str, int], rows: tuple[int, int], columns: tuple[int, int]
) -> Slice:
    """Return the last two axes at a place of the others.

    at: axis -> index, clipped to what there is. rows, columns: first and behind the last.
    """
    value: Any = tensor.value.detach()
    for axis in tensor.axes[:-2]:
        value = value[min(at.get(axis, 0), value.shape[0] - 1)]
    if value.dim() == 1:
        value = value[None]
    value = value[slice(*rows), slice(*columns)]
    whole = not value.is_floating_point()
    numbers = value.double().numpy()
    axes = ("1", *tensor.axes)
    return Slice(
        np.where(numbers < HIDDEN, np.nan, numbers),
        axes[-2],
        axes[-1],
        (rows[0], columns[0]),
        whole,
    )
