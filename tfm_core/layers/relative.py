"""Relative positions: RoPE rotates queries and keys; ALiBi and T5 add a bias to the scores.

Each is one module, called between projections and scores: ``q, k, bias = relative(q, k)`` returns
queries and keys, rotated or unchanged, and the bias of their scores, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.choices.variants.positions import HIGHEST_TURNS, LOWEST_TURNS, ROPE_SCALINGS
from tfm_core.choices.variants.record import resolve
from tfm_core.layers.positions import CachedTable, turn_rates, waves

HALF = (torch.float16, torch.bfloat16)


At = slice | Tensor
"""Positions in a sequence: a slice of them for all examples, or int64 (B, T)."""
ALL = slice(None)
Turn = Callable[[Tensor], Tensor]
RelativeFunction = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor | None]]
"""From queries (B, H, Q, D) and keys (B, H, K, D) to both as they are scored, and a bias or None.

The bias is broadcastable to (B, H, Q, K). A ``Relative`` is one.
"""


class Relative(nn.Module):
    """What acts between the projections of self-attention and its scores.

    A kind overrides ``turn`` or ``bias``, for tokens at any position, and never ``forward``: a
    layer that reads a few tokens of a sequence, or one after the other, calls these two alone.
    """

    def turn(self, like: Tensor, length: int, at: At = ALL) -> Turn:
        """Return the function that maps queries or keys (B, H, T, D) before they are scored.

        like: a tensor of their type and device; at: their positions in a sequence of this length.
        """
        return _unturned

    def bias(self, like: Tensor, length: int, at: At = ALL) -> Tensor | None:
        """Return what is added to the scores of queries, broadcastable to (B, H, Q, length).

        like: a tensor of the type and on the device of the scores; at: positions of the queries.
        """
        return None

    def forward(self, q: Tensor, k: Tensor, at: At = ALL) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return q (B, H, Q, D), k (B, H, K, D) and the bias of their scores.

        at: positions of the queries among the keys, which are complete.
        """
        length = k.size(-2)
        turn_q, turn_k = self.turn(q, length, at), self.turn(k, length)
        return turn_q(q), turn_k(k), self.bias(q, length, at)


def _unturned(x: Tensor) -> Tensor:
    return x


class Rotation(Relative):
    """Turns pairs of dimensions by an angle that grows with position: RoPE, Su et al. 2021, Eq. 34.

    A pair is a complex number, and turning it is one product. The score of two turned vectors
    depends on the offset of their positions only.
    """

    def __init__(
        self,
        d_head: int,
        rope_theta: float = 10000.0,
        *,
        rope_scaling: str = "none",
        rope_factor: float = 1.0,
        rope_original_len: int = 8192,
    ) -> None:
        """d_head must be even; the slowest pair turns once in almost 2 pi rope_theta tokens.

        rope_scaling: the name of one of ROPE_SCALINGS, for texts rope_factor times as long as
        rope_original_len. Raises UnknownVariant for another.
        """
        super().__init__()
        scaled = ROPE_SCALINGS[rope_scaling].function
        scale = None
        if scaled is not None:
            scale = partial(resolve(scaled), factor=rope_factor, length=rope_original_len)
        self.waves = CachedTable(partial(_waves, d_head=d_head, base=rope_theta, scale=scale))

    def turn(self, like: Tensor, length: int, at: At = ALL) -> Turn:
        """Return ``apply_rotary`` with the angles at these positions."""
        waves = self.waves(length, like)[:length][at]  # (T, D / 2, 2) or (B, T, D / 2, 2)
        if not torch.compiler.is_compiling():  # which knows no complex numbers
            waves = torch.view_as_complex(waves)
        return partial(apply_rotary, waves=waves if isinstance(at, slice) else waves[:, None])


def apply_rotary(x: Tensor, waves: Tensor) -> Tensor:
    """Turn the pairs of x: (..., T, D) by angles given as complex numbers, (..., T, D / 2).

    Or as cosine and sine, (..., T, D / 2, 2), for torch to compile.
    """
    wide = x.float() if x.dtype in HALF else x  # no half of a complex number
    pairs = wide.view(*x.shape[:-1], -1, 2)
    if not waves.is_complex():
        (even, odd), (cos, sin) = pairs.unbind(-1), waves.unbind(-1)
        both = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1)
    else:
        both = torch.view_as_real(torch.view_as_complex(pairs) * waves)
    return both.flatten(-2).to(x.dtype)


def slowed(angles: Tensor, factor: float, length: int) -> Tensor:
    """Return angles divided by the factor, as if positions were closer (Chen et al. 2023)."""
    return angles / factor


def slowed_by_parts(angles: Tensor, factor: float, length: int) -> Tensor:
    """Return angles, those of slow pairs divided by the factor (Llama 3.1).

    A pair is slow that turns at most once in ``length`` tokens, and fast from four turns on;
    between them is a mean of both.
    """
    turned = length * angles / (2 * math.pi)
    kept = ((turned - LOWEST_TURNS) / (HIGHEST_TURNS - LOWEST_TURNS)).clamp(0, 1)
    return angles * (kept + (1 - kept) / factor)


def _waves(
    length: int, *, d_head: int, base: float, scale: Callable[[Tensor], Tensor] | None
) -> Tensor:
    """Return (length, d_head / 2, 2): cosine and sine of each pair's angle."""
    rates = turn_rates(d_head, base)
    rates = rates if scale is None else scale(rates)
    return waves(length, rates).view(length, d_head // 2, 2).flip(-1)


class Alibi(Relative):
    """Takes a slope times the distance off every score (Press et al. 2022, section 3)."""

    def __init__(self, n_heads: int) -> None:
        """Each head has its own slope, which is not trained."""
        super().__init__()
        self.penalties = CachedTable(partial(alibi_bias, n_heads))

    def bias(self, like: Tensor, length: int, at: At = ALL) -> Tensor:
        """Return minus slope times distance: (H, Q, K), or (B, H, Q, K) at positions (B, Q)."""
        penalties: Tensor = self.penalties(length, like)[:, :length, :length][:, at]
        return penalties if isinstance(at, slice) else penalties.transpose(0, 1)


def alibi_slopes(n_heads: int) -> Tensor:
    """Return (H,): how fast each head's score falls with distance, Press et al. 2022, section 3.

    Powers of 2^(-8 / n) for n heads; between powers of two, every other slope of the next one.
    """

    def powers(n: int) -> list[float]:
        return [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]

    below = 2 ** math.floor(math.log2(n_heads))
    return torch.tensor(powers(below) + powers(2 * below)[0::2][: n_heads - below])


def alibi_bias(n_heads: int, length: int) -> Tensor:
    """Return (H, T, T): minus slope times distance."""
    positions = torch.arange(length, dtype=torch.float32)
    distance = (positions[:, None] - positions[None, :]).abs()
    return -alibi_slopes(n_heads)[:, None, None] * distance


N_BUCKETS, FARTHEST = 32, 128
"""The buckets of T5, and the distance from which on all share the last one."""


class T5RelativeBias(Relative):
    """Adds what a head learned for the bucket of an offset (T5: Raffel et al. 2020, section 2.1).

    One for all layers of a stack. T5 leaves out the division by sqrt(d_head); it stays here, as for
    every other kind.
    """

    def __init__(self, n_heads: int, d_model: int, *, is_causal: bool) -> None:
        """is_causal: all buckets are for keys before the query."""
        super().__init__()
        self.buckets = CachedTable(partial(buckets, is_causal=is_causal))
        self.table = nn.Parameter(torch.empty(N_BUCKETS, n_heads).normal_(std=d_model**-0.5))

    def bias(self, like: Tensor, length: int, at: At = ALL) -> Tensor:
        """Return each head's number of each bucket: (H, Q, K), or (B, H, Q, K) at (B, Q)."""
        chosen = self.buckets(length, like)[:length, :length][at]  # (Q, K) or (B, Q, K)
        return F.embedding(chosen, self.table).movedim(-1, -3)


def buckets(length: int, *, is_causal: bool) -> Tensor:
    """Return (T, T), int64: the bucket of every key for every query."""
    positions = torch.arange(length)
    return bucket(positions[None, :] - positions[:, None], is_causal=is_causal)


def bucket(offsets: Tensor, *, is_causal: bool) -> Tensor:
    """Return the bucket of each offset, key - query: Raffel et al. 2020, section 2.1.

    Half of the buckets hold one distance each, the others grow with its logarithm up to FARTHEST.
    Both directions have half of all; where nothing is read ahead, the past has all.
    """
    n = N_BUCKETS if is_causal else N_BUCKETS // 2
    distance = (-offsets).clamp(min=0) if is_causal else offsets.abs()
    first = torch.zeros_like(offsets) if is_causal else n * (offsets > 0)
    exact = n // 2
    further = (distance.clamp(min=1) / exact).log() / math.log(FARTHEST / exact) * (n - exact)
    return first + distance.where(distance < exact, (exact + further.long()).clamp(max=n - 1))
