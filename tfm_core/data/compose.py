"""Composing: each digit turned, sized and put into its place on the canvas, a batch at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.data.scenes import CANVAS, LARGE

FILLS = 0.9  # share of a square's side that the longer side of a digit takes
_INK_SIDE = 20  # MNIST fits each digit into 20 by 20 of its 28 by 28 pixels
_INK = 48  # brightness from which a pixel counts as ink


@dataclass(frozen=True, slots=True)
class SceneChanges:
    """How each digit is drawn a little differently, (B, n) each.

    angle: degrees counter-clockwise; zoom: factor; slant: columns that a row leans by, for each row
    further up; right and down: pixels.
    """

    angle: Tensor
    zoom: Tensor
    slant: Tensor
    right: Tensor
    down: Tensor


def compose(digits: Tensor, squares: Tensor, changes: SceneChanges | None = None) -> Tensor:
    """Return pictures uint8 (B, 1, CANVAS, CANVAS), each of n digits in their squares.

    digits: uint8 (B, n, 28, 28); squares: int (B, n, 3), left, top and side in pixels, inside the
    canvas and disjoint. What does not fit its square is cut off, so that digits never touch.
    """
    windows = draw_windows(digits, squares[..., 2], changes)  # (B, n, W, W)
    batch, _n, width, _height = windows.shape
    edge = width // 2  # a canvas with an edge, for windows that reach over it
    side = CANVAS + 2 * edge
    corner = squares[..., :2] + (squares[..., 2:] - width) // 2 + edge  # (B, n, 2)
    steps = torch.arange(width, device=windows.device)
    rows, columns = corner[..., 1:] + steps, corner[..., :1] + steps  # (B, n, W)
    at = rows[..., :, None] * side + columns[..., None, :]
    canvas = windows.new_zeros(batch, side * side)
    canvas.scatter_add_(1, at.flatten(1), windows.flatten(1))
    inner = canvas.view(batch, 1, side, side)[..., edge:-edge, edge:-edge]
    return inner.round().clamp(0, 255).to(torch.uint8)


def ink_boxes(digits: Tensor, squares: Tensor) -> Tensor:
    """Return the box of each digit's ink on the canvas: int64 (B, n, 4).

    Left, top, right and bottom in pixels, the last two behind the ink; arguments as in ``compose``.
    """
    windows = draw_windows(digits, squares[..., 2])
    low, high = _extent(windows >= _INK)
    corner = squares[..., :2] + (squares[..., 2:] - windows.size(-1)) // 2
    return torch.cat([corner + low, corner + high], -1)


def draw_windows(digits: Tensor, sides: Tensor, changes: SceneChanges | None = None) -> Tensor:
    """Return each digit in the middle of a window of LARGE pixels: float (B, n, LARGE, LARGE).

    Its ink lies in the middle of the window, and outside its place (sides: (B, n)) is nothing.
    """
    low, high = _extent(digits > 0)
    middle = (low + high).flatten(0, 1) / digits.size(-1) - 1  # grid_sample counts from -1 to 1
    grow = LARGE / digits.size(-1) * _INK_SIDE / (FILLS * sides.flatten())
    affine = _upright(middle, grow) if changes is None else _changed(middle, grow, changes)
    grid = F.affine_grid(affine, [len(affine), 1, LARGE, LARGE], align_corners=False)
    pixels = digits.flatten(0, 1)[:, None].float()
    windows = F.grid_sample(pixels, grid, align_corners=False).view(*sides.shape, LARGE, LARGE)
    away = (torch.arange(LARGE, device=sides.device) - (LARGE - 1) / 2).abs()  # from the middle
    is_inside = away < sides[..., None] / 2  # (B, n, W)
    return windows * (is_inside[..., :, None] & is_inside[..., None, :])


def _upright(middle: Tensor, grow: Tensor) -> Tensor:
    """Return where pixels come from, (N, 2, 3): middle (N, 2) of the ink, grow (N,) the scale."""
    none = torch.zeros_like(grow)
    rows = (
        torch.stack([grow, none, middle[:, 0]], -1),
        torch.stack([none, grow, middle[:, 1]], -1),
    )
    return torch.stack(rows, 1)


def _changed(middle: Tensor, grow: Tensor, changes: SceneChanges) -> Tensor:
    """Return ``_upright`` with the digits changed: the inverse of what is done to them."""
    turn = changes.angle.flatten() * (math.pi / 180)
    scale = grow / changes.zoom.flatten()
    cos, sin = turn.cos() * scale, turn.sin() * scale
    slant = changes.slant.flatten()
    # first the turn, then the slant: a column moves by slant for each row
    turned = torch.stack([cos, cos * slant - sin, sin, sin * slant + cos], -1).view(-1, 2, 2)
    move = torch.stack([changes.right, changes.down], -1).flatten(0, 1) * (2 / LARGE)
    at = middle - (turned @ move[..., None])[..., 0]
    return torch.cat([turned, at[..., None]], -1)


def _extent(ink: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first column and row of ink, and the ones behind the last: each (..., 2)."""
    size = ink.size(-1)
    used = torch.stack([ink.any(-2), ink.any(-1)], -2).int()  # (..., 2, size): columns, rows
    low = used.argmax(-1)
    return low, size - used.flip(-1).argmax(-1)
