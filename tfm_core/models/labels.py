"""One answer for a whole text: from many vectors to one, and from one to the labels.

Mean pooling averages the words; the other way is BERT's (Devlin et al. 2019, section 3): a token in
front of the text, which stands for no word, gathers what is needed.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def mean_pool(x: Tensor, keep: Tensor) -> Tensor:
    """Return (B, 1, d_model): the mean of the vectors x (B, T, d_model) that are no padding.

    keep: (B, T), True where a token stands.
    """
    share = keep / keep.sum(1, keepdim=True)
    return (share[:, None].to(x.dtype)) @ x


class LabelOutput(nn.Module):
    """Scores for the labels, which are the last words of the vocabulary; no other can be said."""

    def __init__(self, d_model: int, n_words: int, n_labels: int, *, bias: bool = True) -> None:
        """``n_words``: size of the vocabulary, the special tokens included."""
        super().__init__()
        self.labels = nn.Linear(d_model, n_labels, bias=bias)
        self.n_others = n_words - n_labels

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, 1, d_model) to (B, 1, n_words): the lowest number for all that is no label."""
        scores: Tensor = self.labels(x)
        return F.pad(scores, (self.n_others, 0), value=torch.finfo(scores.dtype).min)


class Pooler(nn.Module):
    """BERT's head: the first token's vector through a square layer and a tanh."""

    def __init__(self, d_model: int, bias: bool = True) -> None:
        """Keep the width."""
        super().__init__()
        self.dense = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, d_model) to (B, d_model)."""
        out: Tensor = self.dense(x[:, 0]).tanh()
        return out
