"""One answer for a whole text: from the one vector of it to the labels, or BERT's pooler."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LabelOutput(nn.Module):
    """Scores for the labels, which are the last words of the vocabulary; no other can be said."""

    def __init__(
        self, d_model: int, n_words: int, n_labels: int, *, n_hidden: int = 0, bias: bool = True
    ) -> None:
        """``n_words``: size of the vocabulary, the special tokens included.

        n_hidden: width of a hidden layer with a ReLU; 0 for none.
        """
        super().__init__()
        self.hidden = nn.Linear(d_model, n_hidden, bias=bias) if n_hidden else None
        self.labels = nn.Linear(n_hidden or d_model, n_labels, bias=bias)
        self.n_others = n_words - n_labels

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, 1, d_model) to (B, 1, n_words): the lowest number for all that is no label."""
        x = x if self.hidden is None else self.hidden(x).relu()
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
