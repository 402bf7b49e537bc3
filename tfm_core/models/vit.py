"""The Vision Transformer: "An Image is Worth 16x16 Words" (Dosovitskiy et al. 2021), section 3.1.

A picture is a sentence of patches; an encoder reads it and one vector tells the class.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tfm_core.layers import recorder
from tfm_core.layers.blocks import Stack
from tfm_core.layers.pooling import Pool


class VisionTransformer(nn.Module):
    """Patches, an optional CLS token, positions, an encoder, pooling and a linear head."""

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
        """pool: what the head reads. has_cls: whether a CLS token stands in front, and is that."""
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
