"""Whose attention of a described picture is shown, and how much of it lies where it should."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfm_core.inspect.caption_look import Array, Look

MEAN = -1
"""Instead of a head: the mean of all heads of the layer."""


@dataclass(frozen=True, slots=True)
class Heads:
    """A decoder layer and a head of it, from 0, or MEAN."""

    layer: int
    head: int = MEAN


def chosen_maps(look: Look, chosen: Heads) -> Array:
    """Return the attention of each word over the patches, (T, side, side)."""
    layer: Array = look.maps[chosen.layer]
    return layer.mean(0) if chosen.head == MEAN else np.asarray(layer[chosen.head])


def scores(look: Look, chosen: Heads) -> list[dict[str, Any]]:
    """Return one row for each word that names a digit that is there.

    word; share: of the chosen attention, inside its box; best: of the head with most there; head:
    that head, layer and head from 1.
    """
    rows = []
    for word in look.words:
        if word.share is None:
            continue
        of_layer = word.share[chosen.layer]
        layer, head = np.unravel_index(int(word.share.argmax()), word.share.shape)
        rows.append(
            {
                "word": word.text,
                "share": float(of_layer.mean() if chosen.head == MEAN else of_layer[chosen.head]),
                "best": float(word.share.max()),
                "head": f"{layer + 1}.{head + 1}",
            }
        )
    return rows
