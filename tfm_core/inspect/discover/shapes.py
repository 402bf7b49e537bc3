"""The shapes that features take in a plane, by the angles between them.

After Elhage et al. 2022, section "The Geometry of Superposition". Torch-free.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tfm_core.probe.types import Floats
from tfm_core.sentences import N_

KEPT = 0.7
"""The length from which on a feature is kept; a feature that is kept alone has length 1."""
TOLERANCE = 15.0
"""Degrees by which each angle between neighbours may differ from that of a shape."""
GAPS: Mapping[str, tuple[int, ...]] = {
    "nothing": (),
    "one": (360,),
    "right-angle": (90, 270),
    "pair": (180, 180),
    "pair-and-one": (90, 90, 180),
    "triangle": (120, 120, 120),
    "square": (90, 90, 90, 90),
    "pentagon": (72, 72, 72, 72, 72),
}
"""Degrees from each feature that is kept to the next, once around."""
IRREGULAR = "irregular"
LABELS: Mapping[str, str] = {
    "nothing": N_("nothing"),
    "one": N_("one feature"),
    "right-angle": N_("two at a right angle"),
    "pair": N_("an opposite pair"),
    "pair-and-one": N_("an opposite pair and one across"),
    "triangle": N_("triangle"),
    "square": N_("square: two opposite pairs"),
    "pentagon": N_("pentagon"),
    IRREGULAR: N_("no regular shape"),
}


def is_kept(vectors: Floats) -> npt.NDArray[np.bool_]:
    """Return which features (..., F) of vectors (..., F, 2) are kept."""
    kept: npt.NDArray[np.bool_] = np.linalg.norm(vectors, axis=-1) >= KEPT
    return kept


def shape_of(vectors: Floats) -> str:
    """Return the shape of vectors (F, 2), a key of ``LABELS``.

    It is one of ``GAPS`` if as many features are kept and, begun at one of them, in one direction
    or the other, each angle to the next differs by at most TOLERANCE.
    """
    kept = vectors[is_kept(vectors)]
    angles = np.sort(np.degrees(np.arctan2(kept[:, 1], kept[:, 0])))
    gaps = np.diff(np.append(angles, angles[:1] + 360))
    turned = [np.roll(gaps[::way], k) for way in (1, -1) for k in range(max(1, len(gaps)))]
    for name, ideal in GAPS.items():
        if len(ideal) == len(gaps) and any(
            (np.abs(one - ideal) <= TOLERANCE).all() for one in turned
        ):
            return name
    return IRREGULAR


def ideal(name: str, n_features: int) -> Floats:
    """Return vectors (F, 2) of a shape: its features come first, with length 1, others are 0."""
    gaps = GAPS[name]
    angles = np.radians(np.cumsum([0, *gaps])[: len(gaps)])
    vectors = np.zeros((n_features, 2))
    vectors[: len(gaps)] = np.column_stack([np.cos(angles), np.sin(angles)])
    return vectors
