"""A stack that computes, in its last block, only the tokens that are read."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from tfm_core.layers import blocks, recorder
from tfm_core.layers.blocks import Block, tokens_at
from tfm_core.layers.relative import Relative


class Stack(blocks.Stack):
    """Where a few tokens are read, they alone go through the last block."""

    def at(self, positions: Tensor, x: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Return the output at positions (B, R) alone: (B, R, d_model)."""
        if recorder.active():  # a recorder gets all tokens
            return super().at(positions, x, mask=mask)
        *before, last = self.layers
        for block in before:
            x = self._pass(block, x, mask=mask, relative=self.relative)
        assert isinstance(last, Block)
        last_at = partial(block_at, last, positions)
        return self._normed(self._pass(last_at, x, mask=mask, relative=self.relative))


def block_at(
    block: Block,
    positions: Tensor,
    x: Tensor,
    *,
    mask: Tensor | None = None,
    relative: Relative | None = None,
) -> Tensor:
    """Return a block's output at positions (B, R) alone, without a memory: (B, R, d_model).

    Every token supplies keys and values; only those at ``positions`` supply queries.
    """
    mask = _rows_at(mask, positions)
    turn = None if relative is None else partial(relative, at=positions)

    def attend(y: Tensor) -> Tensor:
        few = tokens_at(y, positions)
        out: Tensor = block.self_attention(few, y, mask=mask, relative=turn)
        return out

    def skip(x: Tensor, y: Tensor) -> Tensor | None:
        skipped = block.attention_skip(x, y)
        return None if skipped is None else tokens_at(skipped, positions)

    x = block.join(x, block.self_attention_norm, attend, skip)
    return block.join(x, block.feed_forward_norm, block.feed_forward, block.feed_forward_skip)


def _rows_at(mask: Tensor | None, positions: Tensor) -> Tensor | None:
    """Return the mask of queries at positions (B, R): (B, H or 1, R, K), or one row for all."""
    if mask is None or mask.size(-2) == 1:
        return mask
    mask = mask[(None,) * (4 - mask.ndim)]  # (1 or B, 1 or H, Q, K)
    rows = positions[:, None, :, None].expand(-1, mask.size(1), -1, mask.size(-1))
    return mask.expand(len(positions), -1, -1, -1).gather(2, rows)
