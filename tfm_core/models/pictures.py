"""Models that read pictures: the Vision Transformer names the class, the captioner writes words.

A picture is a sentence of patches.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tfm_core.layers import recorder
from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.masks import causal_mask
from tfm_core.models.ends import Pool, Side, SpecialTokens, TokenEmbedding
from tfm_core.models.text import OrderMask, decode_target


class VisionTransformer(nn.Module):
    """Patches, an optional CLS token, positions, an encoder, pooling and a linear head.

    "An Image is Worth 16x16 Words" (Dosovitskiy et al. 2021), section 3.1.
    """

    def __init__(
        self,
        *,
        stem: nn.Module,
        positions: nn.Module,
        encoder: Stack,
        head: nn.Linear,
        pool: Pool,
        has_cls: bool,
        dropout: float = 0.0,
    ) -> None:
        """pool: what the head reads. has_cls: whether it is a CLS token put in front."""
        super().__init__()
        self.stem, self.positions, self.encoder, self.head = stem, positions, encoder, head
        d_model = head.in_features
        self.cls = nn.Parameter(torch.zeros(1, 1, d_model)) if has_cls else None
        self.pool = pool
        self.dropout = nn.Dropout(dropout)

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, C, H, W) float pictures to logits (B, classes)."""
        x = self.stem(images)
        if self.cls is not None:
            x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1)
        x = self.dropout(self.positions(x))
        if self.cls is None:
            pooled = self.pool(self.encoder(x), None)[:, 0]
        else:
            first = x.new_zeros(len(x), 1, dtype=torch.int64)
            pooled = self.encoder.at(first, x)[:, 0]
        out: Tensor = self.head(pooled)
        recorder.record(self.head, pooled=pooled, logits=out)
        return out


class LookingStack(Stack):
    """A stack whose output attends to a memory once, behind its last block."""

    def __init__(self, stack: Stack, cross_attention: nn.Module) -> None:
        """Take the blocks of a stack that has no memory."""
        blocks = [block for block in stack.layers if isinstance(block, Block)]
        super().__init__(blocks, stack.final_norm, relative=stack.relative, windows=stack.windows)
        self.cross_attention = cross_attention

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map x: (B, T, d_model) to the same shape; memory: (B, K, d_model)."""
        x = super().forward(x, mask=mask)
        out: Tensor = self.cross_attention(x, memory, mask=memory_mask)
        return out


class Captioner(SpecialTokens, nn.Module):
    """A ViT's stem, positions and encoder read the picture; a text decoder describes it.

    After "Show, Attend and Tell" (Xu et al. 2015), whose attention over a grid of the picture is
    here a Transformer's cross-attention (Vaswani et al. 2017, section 3.2.3) over patches.

    ``forward(images, tgt_in) -> (B, T, vocabulary)``: images are (B, C, H, W) floats, ``tgt_in``
    (B, T) the caption shifted right, starting with <bos>, padded with ``pad_id`` on the right.
    """

    def __init__(
        self,
        picture: Side[nn.Module, Stack],
        text: Side[TokenEmbedding, Stack],
        output: nn.Linear,
        *,
        pad_id: int | None,
        dropout: float = 0.0,
    ) -> None:
        """picture: stem, positions of patches, encoder; text: positions of words, decoder."""
        super().__init__()
        self.stem, self.positions, self.encoder = (
            picture.embedding,
            picture.positions,
            picture.stack,
        )
        self.tgt_embedding, self.tgt_positions = text.embedding, text.positions
        self.decoder, self.output = text.stack, output
        self.dropout = nn.Dropout(dropout)
        self.pad_id = pad_id
        self.order_mask: OrderMask = causal_mask

    def encode(self, images: Tensor) -> tuple[Tensor, None]:
        """Return memory (B, n_patches, d_model) and no mask: every word may see every patch."""
        return self.encoder(self.dropout(self.positions(self.stem(images)))), None

    def decode(self, tgt_in: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, T, vocabulary) for a caption seen only from the left."""
        return decode_target(self, tgt_in, memory, memory_mask)

    def forward(self, images: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary)."""
        return self.decode(tgt_in, *self.encode(images))
