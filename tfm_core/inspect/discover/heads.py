"""What heads attend to while a sequence repeats, over a training, and when an induction head forms.

After Olsson et al. 2022, "In-context Learning and Induction Heads" (arXiv 2209.11895), section
"Model analysis table": prefix matching is the attention from a token to the token behind its
earlier occurrence. Torch-free.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.discover.transitions import stays
from tfm_core.probe.types import Bools, Floats

Head = tuple[int, int]
"""Layer and head, from 0."""
Formed = tuple[int, tuple[Head, ...], Head]
"""What ``formed`` returns where a head formed."""
THRESHOLD = 0.4
"""The share of attention that makes a head what it is called."""


def one_back(tokens: Sequence[str]) -> Bools:
    """Return (T, T): from each token, the one before it."""
    return np.eye(len(tokens), k=-1, dtype=np.bool_)


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


def formed(steps: npt.NDArray[np.int64], matching: Floats, previous: Floats) -> Formed | None:
    """Return a step, the induction heads, and the head below that the first builds on, or None.

    steps, matching, previous: of ``head_scores``. The heads come in the order in which they form;
    the step is that of the first snapshot from which on the first of them is one.
    A head is one from the first snapshot on from which it always gives THRESHOLD of its attention
    to tokens behind an earlier occurrence, if it did not at the start, and if, at the end, a head
    of a layer below gives as much to the token before: an induction head builds on such a head
    (Elhage et al. 2021). Without one, a high score has another cause.
    """
    if not len(steps):
        return None
    last = previous[-1]
    firsts: list[tuple[int, Head]] = []
    for layer, head in np.ndindex(last.shape):
        is_one = stays(matching[:, layer, head] >= THRESHOLD)
        if layer and is_one[-1] and not is_one[0] and last[:layer].max() >= THRESHOLD:
            firsts.append((int(is_one.argmax()), (layer, head)))
    if not firsts:
        return None
    (index, (layer, _head)), *_others = firsts = sorted(firsts)
    below = np.unravel_index(last[:layer].argmax(), last[:layer].shape)
    heads = tuple(head for _index, head in firsts)
    return int(steps[index]), heads, (int(below[0]), int(below[1]))
