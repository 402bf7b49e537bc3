"""Positions: how a Transformer, which sees a set, is told the order.

Sinusoidal and learned positions are added to the embeddings; rotary positions turn queries and
keys; ALiBi lowers the score with distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfm_core.layers import recorder

HALF = (torch.float16, torch.bfloat16)


def sinusoidal(length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return (length, d_model): sine and cosine waves, Vaswani et al. 2017, section 3.5.

    Column 2i is sin(p / base^(2i / d_model)), column 2i + 1 the cosine; d_model must be even.
    """
    if d_model % 2:
        raise ValueError(f"Sinusoidal positions need an even d_model, and it is {d_model}.")
    rates = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
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
        recorder.record(self, unplaced=x, placed=x)
        return x


class FixedPositions(nn.Module):
    """Adds a table that is computed, not trained, and grows when a longer sequence comes."""

    table: Tensor

    def __init__(self, length: int, make: Callable[[int], Tensor]) -> None:
        """Fill ``length`` rows by ``make(length)``, which returns (length, d_model)."""
        super().__init__()
        self.make = make
        self.register_buffer("table", make(length), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add the first T rows to x: (B, T, d_model)."""
        length = x.size(1)
        if length > self.table.size(0):
            self.table = self.make(length).to(self.table)
        rows = self.table[:length]
        placed = x + rows
        recorder.record(self, unplaced=x, rows=rows, placed=placed)
        return placed


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
        placed = x + rows
        recorder.record(self, unplaced=x, rows=rows, placed=placed)
        return placed


class Rotation:
    """Turns pairs of dimensions by an angle that grows with position: RoPE, Su et al. 2021, Eq. 34.

    A pair is a complex number, and turning it is one product. The score of two turned vectors
    depends on the offset of their positions only.
    """

    def __init__(self, length: int, d_head: int, like: Tensor, base: float = 10000.0) -> None:
        """Prepare the angles of ``length`` positions on the device and in the type of ``like``."""
        waves = sinusoidal(length, d_head, base).to(like)
        waves = waves.float() if waves.dtype in HALF else waves
        self.cos, self.sin = waves[:, 1::2], waves[:, 0::2]  # (T, D / 2)

    def __call__(self, x: Tensor, places: Tensor | None = None) -> Tensor:
        """Turn x: (B, H, T, D), the first T positions, or those in ``places`` (B, T)."""
        first = slice(x.size(-2))
        cos, sin = (
            wave[first] if places is None else wave[places][:, None]
            for wave in (self.cos, self.sin)
        )
        wide = x.float() if x.dtype in HALF else x  # no half of a complex number
        pairs = wide.view(*x.shape[:-1], -1, 2)
        if torch.compiler.is_compiling():  # which fuses these, and knows no complex numbers
            even, odd = pairs.unbind(-1)
            turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1)
        else:
            turned = torch.view_as_real(torch.view_as_complex(pairs) * torch.complex(cos, sin))
        return turned.flatten(-2).to(x.dtype)


def alibi_slopes(n_heads: int) -> Tensor:
    """Return (H,): how fast each head's score falls with distance, Press et al. 2022, section 3.

    Powers of 2^(-8 / n) for n heads; between powers of two, every other slope of the next one.
    """

    def powers(n: int) -> list[float]:
        return [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]

    below = 2 ** math.floor(math.log2(n_heads))
    return torch.tensor(powers(below) + powers(2 * below)[0::2][: n_heads - below])


def alibi_bias(n_heads: int, length: int, like: Tensor) -> Tensor:
    """Return (H, T, T): minus slope times distance, on the device and in the type of ``like``."""
    places = torch.arange(length, device=like.device, dtype=like.dtype)
    distance = (places[:, None] - places[None, :]).abs()
    return -alibi_slopes(n_heads).to(like)[:, None, None] * distance
