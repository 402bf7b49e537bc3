"""The deletion curve: does the model need what an explanation points at?

Patches are removed in the order of the explanation, most important first, while the probability of
the class is measured (Petsiuk et al. 2018, RISE, section 4.2; Samek et al. 2017). The faster it
falls, the better the explanation; random order is the baseline. numpy alone: the model is a
function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.sentences import StudentError

Floats = npt.NDArray[np.floating[Any]]
Predict = Callable[[Floats], Floats]
"""Pictures (N, C, height, width) -> the probability of the class: (N,)."""

RANDOM_ORDERS = 8
MAX_STAGES = 64
"""Points of a curve after its first; with more patches, several are removed at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Deletion:
    """Curves of one picture, each (S,), at most MAX_STAGES + 1 points.

    removed: share of patches removed. curves: explanation -> probability of the class. areas:
    explanation -> area under its curve, lower is better. random: mean over orders, lowest and
    highest their range; random_area: of the mean.
    """

    removed: Floats
    curves: Mapping[str, Floats]
    areas: Mapping[str, float]
    random: Floats
    lowest: Floats
    highest: Floats
    random_area: float

    @property
    def best(self) -> str:
        """The explanation with the smallest area."""
        return min(self.areas, key=lambda name: self.areas[name])


def deletion(
    predict: Predict,
    picture: Floats,
    explanations: Mapping[str, Floats],
    *,
    fill: Floats | float = 0.0,
    n_random: int = RANDOM_ORDERS,
    most_stages: int = MAX_STAGES,
    seed: int = 0,
) -> Deletion:
    """Return the deletion curves of several explanations of one picture.

    picture: (C, height, width). explanations: name -> (side, side), one value a patch. fill: what
    replaces a patch, a number or (C,); 0 is the mean of normalised pixels. most_stages: points
    after the first. Raises StudentError if shapes do not fit.
    """
    sides = {values.shape for values in explanations.values()}
    if len(sides) != 1:
        raise StudentError(
            "Explanations of a picture must have one shape, not {sides}.", sides=sorted(sides)
        )
    (shape,) = sides
    orders = [most_first(values) for values in explanations.values()]
    rng = np.random.default_rng(seed)
    orders += [rng.permutation(shape[0] * shape[1]) for _ in range(n_random)]
    stages = stages_of(shape[0] * shape[1], most_stages)
    pictures = np.concatenate([deleted(picture, order, shape, fill, stages) for order in orders])
    probabilities = np.asarray(predict(pictures), np.float64).reshape(len(orders), -1)
    removed = stages / stages[-1]
    named = probabilities[: len(explanations)]
    by_chance = probabilities[len(explanations) :]
    curves = dict(zip(explanations, named, strict=True))
    mean = by_chance.mean(0)
    return Deletion(
        removed=removed,
        curves=curves,
        areas={name: area(removed, curve) for name, curve in curves.items()},
        random=mean,
        lowest=by_chance.min(0),
        highest=by_chance.max(0),
        random_area=area(removed, mean),
    )


def stages_of(n_patches: int, most: int = MAX_STAGES) -> npt.NDArray[np.int_]:
    """Return how many patches are gone at each point of a curve, from none to all."""
    return np.linspace(0, n_patches, min(n_patches, most) + 1).round().astype(np.int_)


def most_first(values: Floats) -> npt.NDArray[np.int_]:
    """Return the patches (n,) in the order of their values, the largest first; ties keep order."""
    return np.argsort(-np.asarray(values).ravel(), kind="stable")


def deleted(
    picture: Floats,
    order: npt.NDArray[np.int_],
    shape: tuple[int, ...],
    fill: Floats | float = 0.0,
    stages: npt.NDArray[np.int_] | None = None,
) -> Floats:
    """Return (S, C, height, width): the picture with the first patches removed.

    order: (n,) patches, row by row; shape: their rows and columns. stages: (S,) how many to remove;
    by default 0, 1, ... n.
    """
    height, width = picture.shape[1:]
    rows, columns = shape
    if height % rows or width % columns:
        raise StudentError(
            "{rows} × {columns} patches do not divide {height} × {width} pixels.",
            rows=rows,
            columns=columns,
            height=height,
            width=width,
        )
    rank = np.empty(len(order), np.int_)
    rank[order] = np.arange(len(order))
    rank = rank.reshape(rows, columns).repeat(height // rows, 0).repeat(width // columns, 1)
    gone = np.arange(len(order) + 1) if stages is None else stages
    is_gone = rank[None] < gone[:, None, None]  # (S, height, width)
    filled = np.broadcast_to(np.asarray(fill, picture.dtype).reshape(-1, 1, 1), picture.shape)
    return np.where(is_gone[:, None], filled[None], picture[None])


def area(x: Floats, y: Floats) -> float:
    """Return the area under a curve by trapezoids."""
    return float(np.trapezoid(y, x))
