"""Scaled dot-product and multi-head attention: "Attention Is All You Need", sections 3.2.1, 3.2.2.

Each query is scored against every key, and takes the values in those proportions.

Axis letters, here and everywhere: B batch, H heads, Q queries, K keys, T tokens, D d_head.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.choices.variants.sinks import SINKS
from tfm_core.layers import recorder
from tfm_core.layers.relative import RelativeFunction


def attention_scores(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    divisor: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Scores before and after the mask, the inside of Eq. 1 of Vaswani et al. 2017.

    q: (B, H, Q, D), k: (B, H, K, D); mask: bool, broadcastable to (B, H, Q, K), True = may attend;
    bias: added to the scores, broadcastable likewise (ALiBi, T5); divisor: what the dot products
    are divided by, sqrt(D) unless said.
    Returns two (B, H, Q, K); a masked score is the lowest finite number of its type.
    """
    scores = q @ k.mT / (math.sqrt(q.size(-1)) if divisor is None else divisor)
    if bias is not None:
        scores = scores + bias
    if mask is None:
        return scores, scores
    # finite, because -inf would turn a row in which nothing is allowed into NaN
    return scores, scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    divisor: float | None = None,
) -> Tensor:
    """Softmax of scaled dot products, Eq. 1 of Vaswani et al. 2017.

    Arguments as in ``attention_scores``. Returns (B, H, Q, K), rows sum to 1; a query that may
    attend to nothing gets all zeros, and a masked weight is exactly 0.
    """
    return masked_softmax(attention_scores(q, k, mask, bias, divisor=divisor)[1], mask)


def masked_softmax(scores: Tensor, mask: Tensor | None, sink: Tensor | None = None) -> Tensor:
    """Softmax over keys of masked scores (B, H, Q, K), with exact zeros where masked.

    sink: (H,), a further logit in each row of a head; a row sums to 1 with its share, which is left
    out (OpenAI 2025, gpt-oss).
    """
    if sink is None:
        weights = scores.softmax(-1)
    else:
        column = sink.to(scores.dtype)[:, None, None].expand(*scores.shape[:-1], 1)
        weights = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    *,
    divisor: float | None = None,
) -> Tensor:
    """Weighted sum of values by PyTorch's fused kernel: equal to ``attention_weights(...) @ v``.

    q: (B, H, Q, D), k and v: (B, H, K, D); divisor as there. Returns (B, H, Q, D).
    """
    attn_mask = mask
    if bias is not None:
        # a finite floor keeps a row with nothing allowed finite; its value is set to zero below
        attn_mask = bias if mask is None else bias.masked_fill(~mask, _floor(q))
        if attn_mask.dim() == 3:  # as it is, the CPU's kernel does not take it
            attn_mask = attn_mask[None]
    scale = None if divisor is None else 1 / divisor
    out = F.scaled_dot_product_attention(
        q, k, v, attn_mask=attn_mask, dropout_p=dropout, scale=scale
    )
    if bias is not None and mask is not None:
        out = out.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return out


def with_sink(
    k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, sink: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Return keys, values, mask and bias with one more key, which has the value 0.

    k and v: (B, H, K, D), mask and bias as in ``attention_scores``; sink: (H,), what the key scores
    of each head's queries; None for 0.
    """
    k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
    mask = None if mask is None else F.pad(mask, (0, 1), value=True)
    if sink is None:
        return k, v, mask, None if bias is None else F.pad(bias, (0, 1))
    if bias is None:
        bias = k.new_zeros(1, 1, k.size(-2) - 1)
    bias = bias.expand(*bias.shape[:-3], len(sink), *bias.shape[-2:])
    column = sink.to(bias.dtype)[:, None, None].expand(*bias.shape[:-1], 1)
    return k, v, mask, torch.cat([bias, column], -1)


def _floor(q: Tensor) -> float:
    """Return what a masked score is, finite in the type in which the kernel computes those of q.

    Half of the lowest number: a score is added to it.
    """
    kind, device = q.dtype, q.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        kind = torch.get_autocast_dtype(device)
    return torch.finfo(kind).min / 2


_WRITTEN_OUT = frozenset(
    {"query", "key", "value", "scores", "masked_scores", "weights", "heads", "mask", "bias", "sink"}
)
"""What a recorder gets of an attention that is computed step by step."""


class Sink(nn.Module):
    """A logit of each head, in the softmax of all its queries."""

    def __init__(self, n_heads: int) -> None:
        """Begin at 0."""
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n_heads))


class MultiHeadAttention(nn.Module):
    """H attentions side by side, each on its own d_head dimensions, then mixed by one matrix.

    The three input projections are one (3 * d_model, d_model) matrix, in the order query, key,
    value, as in ``nn.MultiheadAttention``: a single product when queries and keys come from the
    same tokens. Heads may be wider or narrower than d_model / H: d_q = H * D takes the place of
    d_model then. With fewer key heads than heads (grouped-query attention, Ainslie et al. 2023; a
    single one is the multi-query attention of Shazeer 2019) it is (d_q + 2 * d_kv, d_model).
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        qk_norm_eps: float | None = None,
        sink: str = "none",
        dropout: float = 0.0,
        bias: bool | Literal["qkv"] = True,
    ) -> None:
        """n_kv_heads: heads of keys and values, each for a group of heads; None for all.

        d_head: their width, None for d_model / n_heads. bias: "qkv" for biases of queries, keys and
        values alone (Qwen2).
        qk_norm_eps: epsilon of the RMS norm of each head's queries and keys (Qwen3); None for none.
        sink: the name of one of SINKS. Raises UnknownVariant for another, and
        ValueError when n_heads does not divide d_model, without d_head, or n_kv_heads n_heads.
        """
        super().__init__()
        if d_head is None and d_model % n_heads:
            raise ValueError(f"n_heads {n_heads} does not divide d_model {d_model}")
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.d_model, self.n_heads, self.dropout = d_model, n_heads, dropout
        self.n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads % self.n_kv_heads:
            raise ValueError(f"n_kv_heads {n_kv_heads} does not divide n_heads {n_heads}")
        d_q, d_kv = n_heads * self.d_head, self.n_kv_heads * self.d_head
        self.widths = (d_q, d_kv, d_kv)  # of query, key and value
        self.divisor = math.sqrt(self.d_head)  # of the scores
        self.in_projection = _linear(d_model, sum(self.widths), bool(bias))
        self.out_projection: nn.Module = _linear(d_q, d_model, bias is True)
        self.has_sink = SINKS[sink].is_there
        self.sink = Sink(n_heads) if SINKS[sink].is_learned else None
        self.query_norm: nn.RMSNorm | None = None
        self.key_norm: nn.RMSNorm | None = None
        if qk_norm_eps is not None:
            self.query_norm = nn.RMSNorm(self.d_head, eps=qk_norm_eps)
            self.key_norm = nn.RMSNorm(self.d_head, eps=qk_norm_eps)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        relative: RelativeFunction | None = None,
    ) -> Tensor:
        """Self-attention over ``x``, or cross-attention from ``x`` to ``memory``.

        x: (B, Q, d_model), memory: (B, K, d_model); mask as in ``attention_scores``; relative: the
        positions that act here, on queries and keys or on scores. Returns (B, Q, d_model).
        """
        mask = recorder.changed(self, "mask", mask)
        q, k, v = self.project(x, memory)
        bias = None
        if relative is not None:
            q, k, bias = recorder.changed(self, "relative", relative(q, k), (q, k, None))
        is_kept = recorder.is_wanted(self, _WRITTEN_OUT)
        is_written_out = is_kept or recorder.is_changed(self, "weights")
        attend = self.attend_explicitly if is_written_out else self.attend
        return self.merge(attend(q, k, v, mask, bias))

    def project(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return query (B, H, Q, D), key and value (B, H, K, D); key and value from ``memory``.

        Heads of a group get the same key and value.
        """
        if memory is None:
            query, key, value = self.in_projection(x).split(self.widths, -1)
        else:
            weight, bias, d = self.in_projection.weight, self.in_projection.bias, self.widths[0]
            q_bias, kv_bias = (None, None) if bias is None else (bias[:d], bias[d:])
            query = F.linear(x, weight[:d], q_bias)
            key, value = F.linear(memory, weight[d:], kv_bias).chunk(2, -1)
        norms = (self.query_norm, self.key_norm, None)
        q, k, v = map(self._heads, (query, key, value), norms)
        if self.n_kv_heads < self.n_heads:
            group = self.n_heads // self.n_kv_heads
            k, v = (part.repeat_interleave(group, 1) for part in (k, v))
        recorder.record(
            self,
            query_input=x,
            key_value_input=x if memory is None else memory,
            projected_query=query,
            projected_key=key,
            projected_value=value,
            split_query=self._heads(query),
            normed_query=q if self.query_norm is not None else None,
        )
        return q, k, v

    def _heads(self, projected: Tensor, norm: nn.RMSNorm | None = None) -> Tensor:
        """Split (B, T, H * D) into heads, (B, H, T, D), each normed by itself if at all."""
        split = projected.view(*projected.shape[:2], -1, self.d_head)
        if norm is not None:
            split = norm(split.to(norm.weight.dtype))  # in full under autocast
        return split.transpose(1, 2)

    def by_head(self, rows: Tensor) -> Tensor:
        """Return (3 * d_q, ...) of the rows of ``in_projection``'s weight or bias.

        Rows of a key and of a value are there for each head that shares them.
        """
        group = self.n_heads // self.n_kv_heads
        query, *shared = torch.split(rows, list(self.widths))
        each = [part.view(-1, self.d_head, *rows.shape[1:]) for part in shared]
        return torch.cat(
            [query, *(part.repeat_interleave(group, 0).flatten(0, 1) for part in each)]
        )

    @property
    def _sink_logits(self) -> Tensor | None:
        """What the sink of each head scores, (H,), where that is trained."""
        return None if self.sink is None else self.sink.logits

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        """Return the weighted sums of values (B, H, Q, D); arguments as in ``fused_attention``."""
        dropout = self.dropout if self.training else 0.0
        if self.has_sink:
            k, v, mask, bias = with_sink(k, v, mask, bias, self._sink_logits)
        return fused_attention(q, k, v, mask, bias, dropout, divisor=self.divisor)

    def attend_explicitly(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        """Return what ``attend`` does, by way of the weights, for a recorder."""
        scores, masked = attention_scores(q, k, mask, bias, divisor=self.divisor)
        sink = self._sink_logits
        if self.has_sink and sink is None:
            sink = scores.new_zeros(self.n_heads)
        weights = recorder.changed(self, "weights", masked_softmax(masked, mask, sink), mask)
        heads = F.dropout(weights, self.dropout, self.training) @ v
        recorder.record(
            self,
            query=q,
            key=k,
            value=v,
            scores=scores,
            masked_scores=masked,
            weights=weights,
            heads=heads,
            mask=mask,
            bias=bias,
            sink=sink,
        )
        return heads

    def merge(self, heads: Tensor) -> Tensor:
        """Concatenate heads (B, H, Q, D) and mix them: (B, Q, d_model)."""
        merged = recorder.changed(self, "merged", heads.transpose(1, 2).flatten(2))
        out: Tensor = recorder.changed(self, "output", self.out_projection(merged), merged)
        recorder.record(self, merged=merged, output=out)
        return out


def _linear(d_in: int, d_out: int, bias: bool) -> nn.Linear:
    layer = nn.Linear(d_in, d_out, bias=bias)
    draw_glorot(layer)
    return layer


def draw_glorot(layer: nn.Linear) -> None:
    """Draw a matrix as in Glorot & Bengio 2010, in place; the bias becomes 0."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
