"""Positions added to embeddings; without them a Transformer sees a set, not a sequence.

Those that act inside attention are in ``relative``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from tfm_core.layers import recorder


def sinusoidal(length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return (length, d_model): sine and cosine waves, Vaswani et al. 2017, section 3.5.

    Column 2i is sin(p / base^(2i / d_model)), column 2i + 1 the cosine; d_model must be even.
    """
    if d_model % 2:
        raise ValueError(f"Sinusoidal positions need an even d_model, and it is {d_model}.")
    return waves(length, turn_rates(d_model, base))


def turn_rates(width: int, base: float) -> Tensor:
    """Return (width / 2,), float64: the angle from one position to the next of each pair."""
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def waves(length: int, rates: Tensor) -> Tensor:
    """Return (length, 2 * rates): sine and cosine of position times rate, in turn."""
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


def sinusoidal_2d(rows: int, columns: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return (rows * columns, d_model): half of the waves tell the row, half the column.

    As in "An Image is Worth 16x16 Words", appendix D.4, and MAE; 4 must divide d_model.
    """
    if d_model % 4:
        raise ValueError(f"2-D sinusoidal positions need 4 to divide d_model, and it is {d_model}.")
    by_row = sinusoidal(rows, d_model // 2, base)[:, None].expand(rows, columns, -1)
    by_column = sinusoidal(columns, d_model // 2, base)[None].expand(rows, columns, -1)
    return torch.cat([by_row, by_column], -1).flatten(0, 1)


class NoPositions(nn.Module):
    """Adds nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x: (B, T, d_model) as it is."""
        placed = recorder.changed(self, "placed", x, x)
        recorder.record(self, unplaced=x, placed=placed)
        return placed


class CachedTable(nn.Module):
    """A table by position, computed and cached, rebuilt for longer sequences; not trained."""

    values: Tensor

    def __init__(self, make: Callable[[int], Tensor], length: int = 0) -> None:
        """``make(length)``: float32 or int64 for that many positions; ``length``: how many now."""
        super().__init__()
        self.make, self.length = make, length
        self.register_buffer("values", make(length), persistent=False)

    def forward(self, length: int, like: Tensor) -> Tensor:
        """Return the table, for ``length`` positions at least, on the device of ``like``.

        It is float32, or wider where ``like`` is; whole numbers stay as they are.
        """
        values, kind = self.values, torch.promote_types(like.dtype, torch.float32)
        kind = kind if values.is_floating_point() else values.dtype
        if length > self.length or (values.device, values.dtype) != (like.device, kind):
            length = max(length, self.length)
            with torch.inference_mode(False):  # what is made in it could not be used in training
                values = self.make(length).to(like.device, kind)
            self.values, self.length = values, length
        return values


class FixedPositions(nn.Module):
    """Adds a table that is computed, not trained, and grows when a longer sequence comes."""

    def __init__(self, length: int, make: Callable[[int], Tensor]) -> None:
        """Fill ``length`` rows by ``make(length)``, which returns (length, d_model)."""
        super().__init__()
        self.table = CachedTable(make, length)

    def forward(self, x: Tensor) -> Tensor:
        """Add the first T rows to x: (B, T, d_model)."""
        length = x.size(1)
        rows: Tensor = self.table(length, x)[:length]
        placed = recorder.changed(self, "placed", x + rows, x)
        recorder.record(self, unplaced=x, rows=rows, placed=placed)
        return placed


def sinusoidal_positions(length: int, d_model: int) -> FixedPositions:
    """Return the layer that adds ``sinusoidal``."""
    return FixedPositions(length, partial(sinusoidal, d_model=d_model))


def grid_positions(length: int, side: int, d_model: int) -> FixedPositions:
    """Return the layer that adds ``sinusoidal_2d`` to side * side patches, the last of ``length``.

    A CLS token in front has no place in the picture and gets a row of zeros.
    """

    def make(length: int) -> Tensor:
        grid = sinusoidal_2d(side, side, d_model)
        return nn.functional.pad(grid, (0, 0, length - side**2, 0))

    return FixedPositions(length, make)


class LearnedPositions(nn.Module):
    """Adds one trained vector a position (BERT, GPT-2, ViT)."""

    def __init__(self, length: int, d_model: int, std: float = 0.02) -> None:
        """Make ``length`` rows of N(0, std)."""
        super().__init__()
        self.table = nn.Parameter(torch.empty(length, d_model).normal_(std=std))

    def forward(self, x: Tensor) -> Tensor:
        """Add the first T rows to x: (B, T, d_model). Raises ValueError beyond the table."""
        length = x.size(1)
        if length > self.table.size(0):
            raise ValueError(
                f"The sequence has {length} tokens, but the learned position table has "
                f"{self.table.size(0)} rows."
            )
        rows = self.table[:length]
        placed = recorder.changed(self, "placed", x + rows, x)
        recorder.record(self, unplaced=x, rows=rows, placed=placed)
        return placed
