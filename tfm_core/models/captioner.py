"""Captioning: a decoder looks at a picture while it writes, word by word.

After "Show, Attend and Tell" (Xu et al. 2015), whose attention over a grid of the picture is here a
Transformer's cross-attention (Vaswani et al. 2017, section 3.2.3) over a Vision Transformer's
patches.
"""

from __future__ import annotations

from torch import Tensor, nn

from tfm_core.layers.blocks import Stack
from tfm_core.layers.masks import causal_mask
from tfm_core.models.embedding import TokenEmbedding
from tfm_core.models.text import OrderMask, write


class Captioner(nn.Module):
    """A ViT's stem, positions and encoder read the picture; a text decoder describes it.

    ``forward(images, tgt_in) -> (B, T, vocabulary)``: images are (B, C, H, W) floats, ``tgt_in``
    (B, T) the caption shifted right, starting with <bos>, padded with ``pad_id`` on the right.
    """

    def __init__(
        self,
        *,
        stem: nn.Module,
        positions: nn.Module,
        encoder: Stack,
        tgt_embedding: TokenEmbedding,
        tgt_positions: nn.Module,
        decoder: Stack,
        output: nn.Linear,
        pad_id: int | None,
        dropout: float = 0.0,
    ) -> None:
        """``positions`` are the patches', ``tgt_positions`` the words'."""
        super().__init__()
        self.stem, self.positions, self.encoder = stem, positions, encoder
        self.tgt_embedding, self.tgt_positions = tgt_embedding, tgt_positions
        self.decoder, self.output = decoder, output
        self.dropout = nn.Dropout(dropout)
        self.pad_id, self.window = pad_id, 0
        self.order_mask: OrderMask = causal_mask

    def encode(self, images: Tensor) -> tuple[Tensor, None]:
        """Return memory (B, n_patches, d_model) and no mask: every word may see every patch."""
        return self.encoder(self.dropout(self.positions(self.stem(images)))), None

    def decode(self, tgt_in: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, T, vocabulary) for a caption seen only from the left."""
        return write(self, tgt_in, memory, memory_mask)

    def forward(self, images: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary)."""
        return self.decode(tgt_in, *self.encode(images))
