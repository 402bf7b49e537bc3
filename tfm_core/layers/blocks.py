"""Encoder and decoder blocks: sublayers joined by residual connections and norms.

Post-norm is the paper's ``norm(x + sublayer(x))`` (Vaswani et al. 2017, section 3.1); pre-norm is
``x + sublayer(norm(x))`` (Xiong et al. 2020), which trains without a careful warm-up.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.feed_forward import FeedForward
from tfm_core.layers.norms import NORM_EPS, make_norm
from tfm_core.layers.positions import Rotation


class Block(nn.Module):
    """Self-attention, cross-attention if ``has_cross``, and feed-forward.

    Without cross-attention it is an encoder block, or the block of a decoder-only model (the mask
    makes the difference); with it, a decoder block.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        has_cross: bool = False,
        dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "layernorm",
        norm_first: bool = False,
        bias: bool = True,
        eps: float = NORM_EPS,
    ) -> None:
        """Raise ValueError when n_heads does not divide d_model."""
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, n_heads, dropout=dropout, bias=bias)
        self.self_attention_norm = make_norm(norm, d_model, eps)
        if has_cross:
            self.cross_attention = MultiHeadAttention(d_model, n_heads, dropout=dropout, bias=bias)
            self.cross_attention_norm = make_norm(norm, d_model, eps)
        self.has_cross = has_cross
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=dropout, bias=bias
        )
        self.feed_forward_norm = make_norm(norm, d_model, eps)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        bias: Tensor | None = None,
        rotation: Rotation | None = None,
        asking: Tensor | None = None,
    ) -> Tensor:
        """Map x: (B, T, d_model) to the same shape.

        mask: over (B, H, T, T); memory: (B, S, d_model) for cross-attention, with memory_mask over
        (B, H, T, S); bias (ALiBi) and rotation (RoPE) act in self-attention only. asking: places
        (B, R) of the only tokens that ask and are returned, (B, R, d_model); all are asked.
        """

        def attend(y: Tensor) -> Tensor:
            out: Tensor
            if asking is None:
                out = self.self_attention(y, mask=mask, bias=bias, rotation=rotation)
            else:
                out = self.self_attention(
                    tokens_at(y, asking),
                    y,
                    mask=_rows_at(mask, asking),
                    bias=_rows_at(bias, asking),
                    rotation=rotation,
                    places=asking,
                )
            return out

        x = self._join(x, self.self_attention_norm, attend, asking)
        if self.has_cross:
            x = self._join(
                x,
                self.cross_attention_norm,
                lambda y: self.cross_attention(y, memory, mask=memory_mask),
            )
        x = self._join(x, self.feed_forward_norm, self.feed_forward)
        recorder.record(self, residual=x)
        return x

    def _join(
        self,
        x: Tensor,
        norm: nn.Module,
        sublayer: Callable[[Tensor], Tensor],
        asking: Tensor | None = None,
    ) -> Tensor:
        if self.norm_first:
            normed: Tensor = norm(x)
            change = sublayer(normed)
            x = x if asking is None else tokens_at(x, asking)
            total: Tensor = x + self.dropout(change)
            recorder.record(norm, skipped=x, normed=normed, change=change, joined=total)
            return total
        change = sublayer(x)
        x = x if asking is None else tokens_at(x, asking)
        total = x + self.dropout(change)
        joined: Tensor = norm(total)
        recorder.record(norm, skipped=x, change=change, total=total, joined=joined)
        return joined


def tokens_at(x: Tensor, places: Tensor) -> Tensor:
    """Return the tokens of x: (B, T, d) at places (B, R), (B, R, d)."""
    return x.gather(1, places[..., None].expand(-1, -1, x.size(-1)))


def _rows_at(table: Tensor | None, places: Tensor) -> Tensor | None:
    """Return the rows of a mask or bias at places (B, R): (B, 1 or H, R, K), or one row for all."""
    if table is None or table.size(-2) == 1:
        return table
    table = table[(None,) * (4 - table.ndim)]  # (1 or B, 1 or H, Q, K)
    rows = places[:, None, :, None].expand(-1, table.size(1), -1, table.size(-1))
    return table.expand(len(places), -1, -1, -1).gather(2, rows)


class Stack(nn.Module):
    """N blocks and, after a pre-norm stack, one last norm."""

    def __init__(
        self,
        blocks: list[Block],
        final_norm: nn.Module | None,
        *,
        relative: Callable[[Tensor], dict[str, Tensor | Rotation]] | None = None,
    ) -> None:
        """``relative(x)`` returns the bias or the rotation that all blocks share, if any."""
        super().__init__()
        self.layers = nn.ModuleList(blocks)
        self.final_norm = final_norm
        self.relative = relative

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        read: Tensor | None = None,
    ) -> Tensor:
        """Map x: (B, T, d_model) to the same shape; the arguments are the blocks'.

        read: places (B, R) of the only tokens of the answer that will be read, so the last block
        need not compute the others; while a recorder watches it does: (B, R or T, d_model).
        """
        shared = self.relative(x) if self.relative is not None else {}
        recorder.record(self, input=x)
        asking = None if recorder.active() else read
        last = len(self.layers) - 1
        for place, block in enumerate(self.layers):
            x = block(
                x,
                mask=mask,
                memory=memory,
                memory_mask=memory_mask,
                asking=asking if place == last else None,
                **shared,
            )
        if self.final_norm is not None:
            x = self.final_norm(x)
        recorder.record(self, output=x)
        return x
