"""The ends of a model: embeddings of ids, one vector for a whole text or picture, its labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.data.vocabulary import BOS, EOS
from tfm_core.layers import recorder

UNSCALED_STD = 0.02  # as GPT-2's and BERT's tables start


class SpecialTokens:
    """The special tokens of a model of words; those of our vocabularies if nothing else is said.

    pad_id: None where no token is for padding. bos_id, eos_id: see ``TextShape``.
    """

    pad_id: int | None
    bos_id: int = BOS
    eos_id: int = EOS

    @property
    def fill_id(self) -> int:
        """What stands behind the end of a text that is shorter than others."""
        return self.eos_id if self.pad_id is None else self.pad_id


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
        recorder.record(self, added=out)
        return out


Embedding = TypeVar("Embedding", bound=nn.Module, covariant=True)
Layers = TypeVar("Layers", bound=nn.Module, covariant=True)


@dataclass(frozen=True, slots=True)
class Side(Generic[Embedding, Layers]):
    """One side of a model: what makes vectors, positions added to them, the stack that reads them.

    A model registers the parts under its own names.
    """

    embedding: Embedding
    stack: Layers
    positions: nn.Module = field(default_factory=nn.Identity)


Pool = Callable[[Tensor, Tensor | None], Tensor]
"""From vectors (B, T, d_model) and bool (B, T), True for a token, to (B, 1, d_model).

``None`` says that there is no padding, as in pictures."""


def mean_of_tokens(x: Tensor, keep: Tensor | None) -> Tensor:
    """Return (B, 1, d_model): the mean of the vectors x (B, T, d_model) that are no padding.

    keep: (B, T), True for a token; None if all are. The mean of padding
    alone is zeros.
    """
    if keep is None:
        return x.mean(1, keepdim=True)
    share = keep / keep.sum(1, keepdim=True).clamp(min=1)
    return (share[:, None].to(x.dtype)) @ x


def first_token(x: Tensor, keep: Tensor | None) -> Tensor:
    """Return (B, 1, d_model): the first of the vectors x (B, T, d_model); keep is not read."""
    return x[:, :1]


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
