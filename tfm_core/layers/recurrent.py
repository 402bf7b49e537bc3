"""Attention between two recurrent networks: which source state fits the state of the decoder?

Additive scores are those of Bahdanau, Cho & Bengio 2015, "Neural Machine Translation by Jointly
Learning to Align and Translate", appendix A.1.2; dot, general and concat those of Luong, Pham &
Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.1.

``LinearScore`` is neither's, and shows why they have more than a linear layer.

Axis letters as in ``attention``: B batch, Q queries (decoder states), K keys (source states), D
width. There is one head, and the values are the source states themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.layers import recorder
from tfm_core.layers.attention import masked_softmax


class AdditiveScore(nn.Module):
    """Eq. of appendix A.1.2 in Bahdanau et al. 2015: v^T tanh(W s + U h)."""

    def __init__(self, d_model: int) -> None:
        """Take the width of both states."""
        super().__init__()
        self.of_state = nn.Linear(d_model, d_model, bias=False)  # W
        self.of_source = nn.Linear(d_model, d_model)  # U
        self.v = nn.Linear(d_model, 1, bias=False)

    def prepare(self, memory: Tensor) -> Tensor:
        """Return U h, once for all target tokens: the paper's own advice."""
        out: Tensor = self.of_source(memory)
        return out

    def query_projection(self, states: Tensor) -> Tensor:
        """Return W s, the share of the decoder states."""
        out: Tensor = self.of_state(states)
        return out

    def forward(self, query_projection: Tensor, prepared: Tensor) -> Tensor:
        """Return scores (B, Q, K) from ``query_projection`` and ``prepare``."""
        return _sum_of_tanh(query_projection, prepared, self.v)


class _JoinedScore(nn.Module):
    """One matrix W for both states: W [s; h] is the sum of the products of its halves."""

    def __init__(self, d_model: int, n_out: int) -> None:
        """Take the width of both states, and the rows of W."""
        super().__init__()
        self.joined = nn.Linear(2 * d_model, n_out, bias=False)

    def prepare(self, memory: Tensor) -> Tensor:
        """Return the right half of W times h."""
        return memory @ self.joined.weight[:, memory.size(-1) :].T

    def query_projection(self, states: Tensor) -> Tensor:
        """Return the left half of W times s."""
        return states @ self.joined.weight[:, : states.size(-1)].T


class ConcatScore(_JoinedScore):
    """Luong et al. 2015, Eq. 8, concat: v^T tanh(W [s; h])."""

    def __init__(self, d_model: int) -> None:
        """Take the width of both states."""
        super().__init__(d_model, d_model)
        self.v = nn.Linear(d_model, 1, bias=False)

    def forward(self, query_projection: Tensor, prepared: Tensor) -> Tensor:
        """Return scores (B, Q, K) from ``query_projection`` and ``prepare``."""
        return _sum_of_tanh(query_projection, prepared, self.v)


class DotScore(nn.Module):
    """Luong et al. 2015, Eq. 8, dot: s^T h, without the later division by sqrt(d)."""

    def __init__(self, d_model: int) -> None:
        """There is nothing to learn."""
        super().__init__()

    def prepare(self, memory: Tensor) -> Tensor:
        """Return h as it is."""
        return memory

    def query_projection(self, states: Tensor) -> Tensor:
        """Return s as it is."""
        return states

    def forward(self, query_projection: Tensor, prepared: Tensor) -> Tensor:
        """Return scores (B, Q, K) from ``query_projection`` and ``prepare``."""
        return query_projection @ prepared.mT


class GeneralScore(DotScore):
    """Luong et al. 2015, Eq. 8, general: s^T W h."""

    def __init__(self, d_model: int) -> None:
        """Take the width of both states."""
        super().__init__(d_model)
        self.matrix = nn.Linear(d_model, d_model, bias=False)

    def prepare(self, memory: Tensor) -> Tensor:
        """Return W h."""
        out: Tensor = self.matrix(memory)
        return out


class LinearScore(_JoinedScore):
    """One linear layer on both states: w^T [s; h], the sum of a number of s and a number of h.

    The softmax over h cancels the number of s, so every target word gets the same weights.
    """

    def __init__(self, d_model: int) -> None:
        """Take the width of both states."""
        super().__init__(d_model, 1)

    def forward(self, query_projection: Tensor, prepared: Tensor) -> Tensor:
        """Return scores (B, Q, K) from ``query_projection`` and ``prepare``."""
        return query_projection + prepared.mT


AnyScore = AdditiveScore | ConcatScore | DotScore | LinearScore


class EncodedSource(NamedTuple):
    """The encoded source, as the decoder attends to it.

    memory: the encoder's states (B, K, D); mask: bool (B, 1, K), True = may attend; prepared: each
    state's share of its scores (B, K, D); last: what the encoder ended with (B, D).
    """

    memory: Tensor
    mask: Tensor
    prepared: Tensor
    last: Tensor


class AttentionRead(NamedTuple):
    """Attention to the source: context (B, Q, D); scores, masked scores, weights (B, Q, K).

    query_projection: the decoder states' share of the scores (B, Q, D).
    """

    context: Tensor
    scores: Tensor
    masked: Tensor
    weights: Tensor
    query_projection: Tensor


class RecurrentAttention(nn.Module):
    """Scores, softmax over the source, and the mean of its states in those proportions."""

    def __init__(self, score: AnyScore) -> None:
        """``score`` is what one of ALIGNMENT_SCORES names."""
        super().__init__()
        self.score = score

    def forward(self, states: Tensor, source: EncodedSource) -> AttentionRead:
        """Look at the source from decoder states (B, Q, D)."""
        query_projection = self.score.query_projection(states)
        scores: Tensor = self.score(query_projection, source.prepared)
        masked = scores.masked_fill(~source.mask, torch.finfo(scores.dtype).min)
        weights = masked_softmax(masked, source.mask)
        context = recorder.changed(self, "output", weights @ source.memory, states)
        return AttentionRead(context, scores, masked, weights, query_projection)

    def record(self, states: Tensor, source: EncodedSource, read: AttentionRead) -> None:
        """Record what was computed for all targets, as one head, where a recorder watches."""
        if recorder.active():
            query, key = read.query_projection, source.prepared
            if isinstance(self.score, LinearScore):  # its sum as a dot product: (q, 1) · (1, k)
                query, key = F.pad(query, (0, 1), value=1), F.pad(key, (1, 0), value=1)
            recorder.record(
                self,
                query_input=states,
                key_value_input=source.memory,
                query=query[:, None],
                key=key[:, None],
                value=source.memory[:, None],
                mask=source.mask[:, None],
                scores=read.scores[:, None],
                masked_scores=read.masked[:, None],
                weights=read.weights[:, None],
                heads=read.context[:, None],
            )
            if isinstance(self.score, (AdditiveScore, ConcatScore)):
                recorder.record(self, v=self.score.v.weight.expand(len(states), -1))


def _sum_of_tanh(query_projection: Tensor, prepared: Tensor, v: nn.Module) -> Tensor:
    """Return v^T tanh(a + b) for each pair of a (B, Q, D) and b (B, K, D): (B, Q, K)."""
    out: Tensor = v((query_projection[:, :, None] + prepared[:, None]).tanh()).squeeze(-1)
    return out
