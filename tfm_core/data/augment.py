"""Augmentation: each training picture moves, turns and grows a little, anew in every batch.

A whole batch at a time, on its device. What comes into view at an edge repeats the edge's pixels.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.data.moving import to_device


def augment(
    images: Tensor,
    *,
    shift: float,
    rotation: float,
    scale: float,
    generator: torch.Generator,
) -> Tensor:
    """Return the pictures, each moved, turned and scaled at random.

    images: float (B, C, H, W), square. shift: pixels, rotation: degrees, scale: share; each is
    drawn evenly from minus to plus that. With a whole-numbered ``shift`` alone, pictures move by
    whole pixels, exactly; otherwise pixels are interpolated. ``generator`` may live on any device.
    """
    moves = draw(len(images), shift=shift, rotation=rotation, scale=scale, generator=generator)
    moves = to_device(moves, images.device)
    return changed(images, moves, shift=shift, rotation=rotation, scale=scale)


def draw(
    n: int, *, shift: float, rotation: float, scale: float, generator: torch.Generator
) -> Tensor:
    """Return how each of ``n`` pictures is changed, for ``changed``; (0, n) where none is.

    (2, n) int64: whole pixels down and right; else (4, n) from -1 to 1: shares of the most that
    each is moved down and right, turned and scaled.
    """
    on = generator.device
    if shift == rotation == scale == 0:
        return torch.empty(0, n, device=on)
    if rotation == scale == 0 and float(shift).is_integer():
        limit = int(shift)
        return torch.randint(-limit, limit + 1, (2, n), generator=generator, device=on)
    return torch.rand(4, n, generator=generator, device=on) * 2 - 1


def changed(
    images: Tensor, moves: Tensor, *, shift: float, rotation: float, scale: float
) -> Tensor:
    """Return pictures (B, C, H, W) changed as ``draw`` says; its moves lie on their device."""
    if not len(moves):
        return images
    if not moves.is_floating_point():
        down, right = moves
        return shifted(images, down, right)
    down, right, turn, grow = moves
    return transformed(
        images,
        down=down * shift,
        right=right * shift,
        angle=turn * rotation,
        zoom=1 + grow * scale,
    )


def shifted(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Return pictures (B, C, H, W) moved by whole pixels; down and right: int (B,)."""
    n, channels, height, width = images.shape
    rows = (torch.arange(height, device=images.device) - down[:, None]).clamp(0, height - 1)
    columns = (torch.arange(width, device=images.device) - right[:, None]).clamp(0, width - 1)
    indices = (rows[:, :, None] * width + columns[:, None, :]).view(n, 1, height * width)
    moved = images.flatten(2).gather(2, indices.expand(-1, channels, -1))
    return moved.view(n, channels, height, width)


def transformed(
    images: Tensor, *, down: Tensor, right: Tensor, angle: Tensor, zoom: Tensor
) -> Tensor:
    """Return square pictures (B, C, H, H) turned, scaled about the middle, then moved.

    down and right: pixels (B,); angle: degrees counter-clockwise (B,); zoom: factor (B,).
    """
    half = images.shape[-1] / 2
    radians = angle * (math.pi / 180)
    cos, sin = radians.cos() / zoom, radians.sin() / zoom
    x, y = right / half, down / half  # grid_sample counts from -1 to 1
    # Each pixel of the result looks up where it came from: the inverse of the change.
    inverse = torch.stack(
        [
            torch.stack([cos, -sin, sin * y - cos * x], -1),
            torch.stack([sin, cos, -sin * x - cos * y], -1),
        ],
        dim=1,
    ).to(images.dtype)  # (B, 2, 3)
    grid = F.affine_grid(inverse, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)
