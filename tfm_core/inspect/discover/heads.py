"""What heads attend to while a sequence repeats, over a training, and when an induction head forms.

After Olsson et al. 2022, "In-context Learning and Induction Heads" (arXiv 2209.11895), section
"Model analysis table": prefix matching is the attention from a token to the token behind its
earlier occurrence. Torch-free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
THRESHOLD = 0.4
"""The share of attention that makes a head what it is called."""


def one_back(tokens: Sequence[str]) -> Bools:
    """Return (T, T): from each token, the one before it."""
    return np.eye(len(tokens), k=-1, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class HeadScores:
    """Mean attention of each head over a training, each (S, layers, H).

    steps: (S,). matching: on tokens behind an earlier occurrence, of queries that have one.
    previous: on the token before.
    """

    steps: npt.NDArray[np.int64]
    matching: Floats
    previous: Floats


def share_on(maps: Floats, cells: Sequence[Bools]) -> Floats:
    """Return (H,), the mean attention on some cells, of the queries that have any.

    maps: (A, H, Q, K), padded at the end; cells: of each example, (T, T).
    """
    total, n = np.zeros(maps.shape[1]), 0
    for weights, chosen in zip(maps, cells, strict=True):
        length = len(chosen)
        rows = chosen.any(1)
        on = (weights[:, :length, :length].astype(np.float64) * chosen).sum(-1)  # (H, T)
        total, n = total + on[:, rows].sum(1), n + int(rows.sum())
    return total / n if n else np.full(maps.shape[1], np.nan)


@dataclass(frozen=True, slots=True)
class Formed:
    """All induction heads, and the head below that the first builds on; (layer, head), from 0.

    step: of the first snapshot from which on the first induction head is one.
    """

    step: int
    heads: tuple[tuple[int, int], ...]
    previous: tuple[int, int]


def formed(found: HeadScores) -> Formed | None:
    """Return the induction heads, the first to form first, or None where none formed.

    A head is one from the first snapshot on from which it always gives THRESHOLD of its attention
    to tokens behind an earlier occurrence, if it did not at the start, and if, at the end, a head
    of a layer below gives as much to the token before: an induction head builds on such a head
    (Elhage et al. 2021). Without one, a high score has another cause.
    """
    if not len(found.steps):
        return None
    last = found.previous[-1]
    firsts: list[tuple[int, tuple[int, int]]] = []
    for layer, head in np.ndindex(last.shape):
        is_matching = found.matching[:, layer, head] >= THRESHOLD
        stays = np.logical_and.accumulate(is_matching[::-1])[::-1]
        if layer and stays[-1] and not stays[0] and last[:layer].max() >= THRESHOLD:
            firsts.append((int(stays.argmax()), (layer, head)))
    if not firsts:
        return None
    (index, (layer, _head)), *_others = firsts = sorted(firsts)
    below = np.unravel_index(last[:layer].argmax(), last[:layer].shape)
    heads = tuple(head for _index, head in firsts)
    return Formed(int(found.steps[index]), heads, (int(below[0]), int(below[1])))
