"""Positions as numbers: waves, wavelengths, turning pairs, slopes, buckets, patches, tables.

Learned positions of patches are shown by their likeness, as in figure 7 (centre) of "An Image is
Worth 16x16 Words": a model that has understood the geometry finds neighbours in row and column.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import Experiment, built
from tfm_core.choices.variants.positions import POSITIONS, Position
from tfm_core.choices.variants.record import resolve
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.labels import patches_per_side
from tfm_core.probe.types import RELATIVE, Floats, Snapshot
from tfm_core.sentences import N_, StudentError

Offsets = npt.NDArray[np.int64]
WAVES = Columns(
    position=Column(N_("position"), ","),
    dimension=Column(N_("dimension")),
    value=Column(N_("value"), ".4f"),
)
WAVELENGTHS = Columns(
    pair=Column(N_("pair of dimensions")),
    wavelength=Column(N_("wavelength (positions, log)"), ",.1f", {"type": "log", "dtick": 1}),
)
BY_OFFSET = Columns(
    offset=Column(N_("offset (key − query)")),
    distance=Column(N_("distance (tokens)")),
    position=Column(N_("position"), ","),
    value=Column(form=".4f"),
)


def sinusoidal_table(length: int, d_model: int, base: float = 10000.0) -> Floats:
    """Return the sinusoidal positions (length, d_model). Raises ValueError for an odd d_model."""
    from tfm_core.layers.positions import sinusoidal

    table: Floats = sinusoidal(length, d_model, base).numpy()
    return table


def waves(table: Floats, pair: int) -> pd.DataFrame:
    """Return a pair of columns of a table (T, D): position, sine, cosine."""
    columns = {"sine": table[:, 2 * pair], "cosine": table[:, 2 * pair + 1]}
    return WAVES.table({"position": np.arange(len(table)), **columns})


def row(table: Floats, position: int) -> pd.DataFrame:
    """Return one position of a table (T, D): dimension, value, and which wave it is."""
    names = N_("even dimensions, 2i: sine"), N_("odd dimensions, 2i + 1: cosine")
    dimensions = np.arange(table.shape[1])
    waves = pd.Series([names[n % 2] for n in dimensions], dtype=object)  # they stay sentences
    return WAVES.table({"dimension": dimensions, "value": table[position], "wave": waves})


def wavelengths(d_model: int, base: float = 10000.0) -> pd.DataFrame:
    """Return pair, wavelength: tokens until a pair's wave repeats, 2 pi towards base x 2 pi.

    Vaswani et al. 2017, section 3.5.
    """
    lengths = 2 * math.pi * base ** (np.arange(0, d_model, 2) / d_model)
    return WAVELENGTHS.table({"pair": np.arange(d_model // 2), "wavelength": lengths})


def products(table: Floats) -> pd.DataFrame:
    """Return offset, and the dot products of three rows of a table (T, D) with the rows there."""
    n = len(table)
    found: dict[str, npt.ArrayLike] = {"offset": np.arange(1 - n, n)}
    for first in sorted({0, n // 2, n - 1}):
        values = np.full(2 * n - 1, np.nan, np.float32)
        values[n - 1 - first : 2 * n - 1 - first] = table @ table[first]
        found[str(first)] = values
    return BY_OFFSET.table(found)


def cosines(table: Floats) -> Floats:
    """Return (T, T): the cosine of the angle between any two rows; a row of zeros has cosine 0."""
    rows = np.asarray(table, np.result_type(table, np.float32))
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(unit @ unit.T)


_PLAIN = 0.1  # a difference of mean cosines that can be seen in a map


def nearness_text(beside: float, below: float, apart: float) -> str:
    """Return what a ``nearness`` says, in a sentence."""
    row, column = beside - apart, below - apart
    if min(row, column) > _PLAIN:
        return N_("Neighbours are more similar than other pairs.")
    if row > _PLAIN:
        return N_(
            "Neighbours in a row are more similar than other pairs, but not those in a column."
        )
    if column > _PLAIN:
        return N_(
            "Neighbours in a column are more similar than other pairs, but not those in a row."
        )
    return N_("Neighbours are hardly more similar than other pairs.")


def nearness(like: Floats, side: int | None = None) -> tuple[float, float, float]:
    """Return how alike positions are that stand side by side, one below the other, and all others.

    Mean cosines, of cosines (T, T). side: of patches, row by row; without, there are no columns,
    and the first comes twice.
    """
    places = np.arange(len(like))
    row, column = np.divmod(places, side or len(like))
    rows, columns = np.abs(row[:, None] - row), np.abs(column[:, None] - column)
    beside, below = (rows == 0) & (columns == 1), (rows == 1) & (columns == 0)
    apart = rows + columns > 1

    def mean(which: npt.NDArray[np.bool_]) -> float:
        return float(like[which].mean()) if which.any() else 0.0

    return mean(beside), mean(below if side else beside), mean(apart)


def patch_table(side: int, d_model: int, base: float = 10000.0, *, is_2d: bool = True) -> Floats:
    """Return fixed positions (side * side, d_model) of patches, row by row.

    is_2d: half of the waves tell the row, half the column; else patches are counted through.
    Raises ValueError where 4 (2) does not divide d_model.
    """
    from tfm_core.layers.positions import sinusoidal, sinusoidal_2d

    made = sinusoidal_2d(side, side, d_model, base) if is_2d else None
    table: Floats = (sinusoidal(side**2, d_model, base) if made is None else made).numpy()
    return table


def rotary_angles(positions: Sequence[int], d_head: int, base: float = 10000.0) -> Floats:
    """Return (positions, d_head / 2): the angles of RoPE at some positions, radians."""
    speeds = base ** (-np.arange(0, d_head, 2) / d_head)
    return np.stack([position * speeds for position in positions])


def rotary_scores(
    length: int, d_head: int, base: float = 10000.0, *, seed: int | None = None
) -> Floats:
    """Return (length, length): scores of one query and one key turned to every pair of positions.

    By ``layers.relative.Rotation``. seed: of a random query and key; None takes ones for both,
    which shows the decay of RoPE with distance (Su et al. 2021, section 3.4.3).
    Raises ValueError for an odd d_head.
    """
    import torch

    from tfm_core.layers.relative import Rotation

    if seed is None:
        q = k = torch.ones(d_head)
    else:
        draw = torch.Generator().manual_seed(seed)
        q, k = torch.randn(2, d_head, generator=draw)
    everywhere = (x.double().expand(1, 1, length, d_head) for x in (q, k))
    queries, keys, _bias = Rotation(d_head, base)(*everywhere)
    scores: Floats = (queries @ keys.mT / math.sqrt(d_head)).float()[0, 0].numpy()
    return scores


def by_offset(scores: Floats) -> tuple[npt.NDArray[np.int64], Floats, float]:
    """Return offsets key - query, the mean score at each, and the largest spread within one.

    scores: (T, T). A spread of 0 says that the score depends on the offset only.
    """
    length = len(scores)
    offsets = np.arange(1 - length, length)
    diagonals = [np.diagonal(scores, int(offset)) for offset in offsets]
    spread = max(float(np.ptp(diagonal)) for diagonal in diagonals)
    return offsets, np.array([diagonal.mean() for diagonal in diagonals], np.float32), spread


def added_by_distance(kind: Position, n_heads: int, length: int) -> tuple[Floats, Floats]:
    """Return what a kind adds to the scores of the last query, and the weights of equal scores.

    Both (H, length), by distance from 0. What is learned is as it is before training, seed 0.
    """
    import torch

    sizes = {"n_heads": n_heads, "d_model": n_heads, "d_head": 1, "is_causal": True}
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        layer = resolve(kind.layer)(**{name: sizes[name] for name in kind.init_args})
        _q, _k, added = layer(*torch.zeros(2, 1, n_heads, length, 1))
    bias = np.ascontiguousarray(added.expand(1, n_heads, length, length)[0, :, -1].flip(-1).numpy())
    shares = np.exp(bias)
    return bias, np.asarray(shares / shares.sum(1, keepdims=True))


def bucket_of(offsets: Offsets, *, is_causal: bool) -> Offsets:
    """Return T5's bucket of each offset, key - query."""
    import torch

    from tfm_core.layers.relative import bucket

    found: Offsets = bucket(torch.as_tensor(offsets), is_causal=is_causal).numpy()
    return found


def learned_biases(snapshot: Snapshot, farthest: int) -> dict[str, tuple[Offsets, Floats]]:
    """Return what each stack's heads learned to add to a score, by offset; {} where none does.

    Stack -> offsets (n,) up to ``farthest``, 0 or less in a decoder, and biases (H, n).
    """
    found: dict[str, tuple[Offsets, Floats]] = {}
    for name, table in sorted(snapshot.positions.items(), reverse=True):  # the encoder first
        if name.endswith(RELATIVE):
            stack = name.partition(".")[0]
            is_causal = stack == "decoder"
            offsets = np.arange(-farthest, 1 if is_causal else farthest + 1, dtype=np.int64)
            rows = np.asarray(table, np.float32)[bucket_of(offsets, is_causal=is_causal)]
            found[stack] = offsets, rows.T
    return found


def learned_names(snapshot: Snapshot) -> list[str]:
    """Return the learned position tables of a run's snapshot; empty where it has none."""
    return sorted(
        name
        for name, table in snapshot.positions.items()
        if table.ndim == 2 and not name.endswith(RELATIVE)
    )


def learned_table(snapshot: Snapshot, name: str) -> Floats:
    """Return a learned table (rows, d_model) of a snapshot. Raises ValueError where it lacks."""
    if name not in snapshot.positions:
        raise StudentError(
            "The snapshot of step {step:,} holds no table {name}.", step=snapshot.step, name=name
        )
    return np.asarray(snapshot.positions[name], np.float32)


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
    return cosines(patches.astype(np.float64)).astype(np.float32).reshape(side, side, side, side)


def tiles_of(experiment: Experiment, snapshot: Snapshot) -> Floats:
    """Return the tiles of a ViT's learned positions at a snapshot.

    Raises ValueError, in a sentence, for another model and where positions are not learned.
    """
    tables = {n: table for n, table in snapshot.positions.items() if not n.endswith(RELATIVE)}
    # a captioner's words have a table too
    table = tables.get("positions.table", next(iter(tables.values()), None))
    side = patches_per_side(experiment)
    if table is None:
        position = built(experiment.model).position
        if POSITIONS[position].has_table:
            raise StudentError("Step {step:,} has no saved positions.", step=snapshot.step)
        raise StudentError(
            "Training does not change the {position} positions of this model.",
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


def layer_source(path: str) -> type:
    """Return a class or function of ``tfm_core.layers``, to show its code: ``"positions:NAME"``."""
    source: type = resolve(f"tfm_core.layers.{path}")
    return source
