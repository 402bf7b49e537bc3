"""Drawing scenes at random, many at a time: digits without overlap, plain to describe."""

from __future__ import annotations

import torch
from torch import Tensor

from tfm_core.data.scenes import CANVAS, GRID, LARGE, MARGIN, SMALL

_TRIES = 32768  # scenes drawn at once; those that are not plain are dropped


def draw_scenes(
    labels: Tensor, n: int, *, n_digits: int, sizes: bool, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return ``n`` plain scenes (``scenes.is_plain``): which digits, and their squares.

    labels: int64 (D,), the numbers of the digits to choose from. Returns int64 (N, n_digits) and
    int64 (N, n_digits, 3), left, top and side in pixels.
    """
    batches: list[tuple[Tensor, Tensor]] = []
    total = 0
    while total < n:  # ends: of two squares in eight, of three in a hundred are disjoint
        shape = (_TRIES, n_digits)
        chosen = torch.randint(len(labels), shape, generator=generator)
        is_large = torch.randint(2, shape, generator=generator) == 1
        side = torch.where(is_large, LARGE, SMALL) if sizes else torch.full(shape, LARGE)
        n_corners = ((CANVAS - side) // GRID + 1)[..., None]
        corner = (torch.rand((*shape, 2), generator=generator) * n_corners).long() * GRID
        squares = torch.cat([corner, side[..., None]], -1)
        kept = plain(squares, labels[chosen])
        batches.append((chosen[kept], squares[kept]))
        total += int(kept.sum())
    chosen, squares = (torch.cat(part)[:n] for part in zip(*batches, strict=True))
    return chosen, squares


def plain(squares: Tensor, numbers: Tensor) -> Tensor:
    """Return ``scenes.is_plain`` of many scenes, bool (N,).

    squares: (N, n, 3), numbers: (N, n).
    """
    near, side = squares[..., :2], squares[..., 2:]  # (N, n, 2): left and top
    far = near + side
    kept = torch.ones(len(squares), dtype=torch.bool)
    for i in range(squares.size(1)):
        for j in range(i):
            gap = torch.maximum(near[:, j] - far[:, i], near[:, i] - far[:, j])  # (N, 2)
            kept &= (gap.amax(1) >= 0) & ((gap[:, 0] - gap[:, 1]).abs() >= MARGIN)
            middles = (near + far).sum(-1)  # twice row plus column
            apart = (middles[:, i] - middles[:, j]).abs() >= 2 * MARGIN
            kept &= apart | (numbers[:, i] != numbers[:, j])
    return kept
