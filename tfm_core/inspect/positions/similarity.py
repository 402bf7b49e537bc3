"""How alike the position vectors are: "An Image is Worth 16x16 Words", figure 7 (centre).

Cosine similarity of each position's vector with all others: a model that has understood the
picture's geometry finds neighbours in row and column alike. Torch-free, from a snapshot.
"""

from __future__ import annotations

import numpy as np

from tfm_core.choices.config import Experiment, built
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.probe.labels import patches_per_side
from tfm_core.probe.types import RELATIVE, Floats, Snapshot
from tfm_core.sentences import StudentError


def similarity(table: Floats) -> Floats:
    """Return (T, T) cosine similarities, -1 to 1, of the rows of a table (T, d_model).

    A vector of zeros is like nothing: 0.
    """
    table = np.asarray(table, np.float64)
    lengths = np.linalg.norm(table, axis=-1, keepdims=True)
    unit = np.divide(table, lengths, where=lengths > 0, out=np.zeros_like(table))
    return np.asarray(unit @ unit.T, np.float32)


def tiles(table: Floats, side: int, *, has_cls: bool = False) -> Floats:
    """Return (side, side, side, side): for the patch in row r, column c its similarity to all.

    table: (T, d_model), one row a patch, after that of a CLS token if there is one. Raises
    ValueError where the rows do not fill the square.
    """
    patches = table[int(has_cls) :]
    if len(patches) != side**2:
        raise StudentError(
            "{n_patches} positions do not fill {side} by {side} patches.",
            n_patches=len(patches),
            side=side,
        )
    return similarity(patches).reshape(side, side, side, side)


def learned_positions(snapshot: Snapshot) -> Floats | None:
    """Return the learned positions (T, d_model) of a snapshot, None where none are learned."""
    tables = {n: table for n, table in snapshot.positions.items() if not n.endswith(RELATIVE)}
    patches = tables.get("positions.table")  # a captioner's words have a table too
    return next(iter(tables.values()), None) if patches is None else patches


def tiles_of(experiment: Experiment, snapshot: Snapshot) -> Floats:
    """Return the tiles of a ViT's learned positions at a snapshot.

    Raises ValueError, in a sentence, for another model and where positions are not learned.
    """
    table = learned_positions(snapshot)
    side = patches_per_side(experiment)
    if table is None:
        position = built(experiment.model).position
        if POSITIONS[position].has_table:
            raise StudentError("Step {step:,} has no saved positions.", step=snapshot.step)
        raise StudentError(
            "This model's positions are {position}: training does not change them.",
            position=position,
        )
    return tiles(table, side, has_cls=experiment.has_cls)


def geometry(tiles: Floats) -> float:
    """Return how much more alike patches of one row or column are than others, -2 to 2.

    tiles: (side, side, side, side). Near 0 before training; it grows as the grid is learned.
    """
    side = len(tiles)
    rows, columns = np.divmod(np.arange(side**2), side)
    same = (rows[:, None] == rows) | (columns[:, None] == columns)
    itself = np.eye(side**2, dtype=np.bool_)
    flat = tiles.reshape(side**2, side**2)
    if (~same).sum() == 0:
        return 0.0
    return float(flat[same & ~itself].mean() - flat[~same].mean())
