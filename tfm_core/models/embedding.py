"""From ids to vectors: a row of a learned table for each token, and BERT's segments.

The table is scaled up where the first Transformer's is (Vaswani et al. 2017, section 3.4).
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from tfm_core.layers import recorder

UNSCALED_STD = 0.02  # as GPT-2's and BERT's tables start


class TokenEmbedding(nn.Module):
    """Ids to vectors, times sqrt(d_model) (Vaswani et al. 2017, section 3.4) unless said."""

    def __init__(self, n_tokens: int, d_model: int, *, is_scaled: bool = True) -> None:
        """Start with rows of unit length on average; unscaled ones with a deviation of 0.02."""
        super().__init__()
        self.table = nn.Embedding(n_tokens, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5 if is_scaled else UNSCALED_STD)
        self.scale = math.sqrt(d_model) if is_scaled else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """Map (B, T) ids to (B, T, d_model)."""
        rows = self.table(ids)
        out: Tensor = rows * self.scale if self.scale != 1.0 else rows
        recorder.record(self, ids=ids, rows=rows, embedded=out)
        return out


class Segments(nn.Module):
    """Which of two joined texts a token belongs to, then a norm: BERT (Devlin et al. 2019), Fig. 2.

    Our texts are single, so every token gets the vector of the first segment.
    """

    def __init__(self, n_segments: int, d_model: int, norm: nn.Module) -> None:
        """``norm`` follows the sum of all embeddings."""
        super().__init__()
        self.table = nn.Embedding(n_segments, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """Add the first segment's vector to x: (B, T, d_model), and normalise."""
        out: Tensor = self.norm(x + self.table.weight[0])
        return out
