"""The layers of a trained block, laid out for single tokens.

With a single token each product takes microseconds, so Python's overhead is most of a step. These
layers run the code of the ones that they extend; only their parts are called without the hooks of
``nn.Module``, and matrices lie in the order in which they are read.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.layers.attention import MultiHeadAttention, masked_softmax
from tfm_core.layers.blocks import Block
from tfm_core.layers.feed_forward import FeedForward
from tfm_core.models.ends import TokenEmbedding

Layer = Callable[[Tensor], Tensor]

MIN_KEYS = 32
"""Keys that are read at least: a product with fewer takes a slower kernel on the CPU."""


class SingleTokenAttention(MultiHeadAttention):
    """An attention whose projections are one product each, and its scores one product.

    Between them heads are part of the batch: (B * H, T, D) in place of (B, H, T, D). The queries'
    matrix, or the gain of their norm, is divided by ``divisor`` in advance.
    """

    def __init__(self, of: MultiHeadAttention, n_parts: int = 3) -> None:
        """n_parts: 3 for query, key and value; 1 for the query alone."""
        nn.Module.__init__(self)
        self.training = False
        self.d_model, self.n_heads, self.dropout, self.divisor = of.d_model, of.n_heads, 0.0, 1.0
        self.has_sink, self.d_head, self.widths = of.has_sink, of.d_head, of.widths
        d, d_q = of.d_model, of.widths[0]
        self.__dict__["sink"] = of.sink
        weight: Tensor = of.in_projection.weight
        bias: Tensor | None = of.in_projection.bias
        if of.n_kv_heads < of.n_heads:
            weight, bias = of.by_head(weight), None if bias is None else of.by_head(bias)
        scale = weight.new_ones(n_parts, 1, 1)
        self.gains: Tensor | None = None  # of the norms of query and key, (1 or 2, 1, 1, D)
        if of.query_norm is not None and of.key_norm is not None:
            norms = (of.query_norm, of.key_norm)[:n_parts]
            self.gains = torch.stack([norm.weight for norm in norms])[:, None, None]
            self.gains = torch.cat([self.gains[:1] / of.divisor, self.gains[1:]])
            self.eps = of.query_norm.eps
        else:
            scale[0] /= of.divisor
        self.weight = weight[: n_parts * d_q].view(n_parts, d_q, d).mT * scale
        self.shift = scale - scale
        if bias is not None:
            self.shift = bias[: n_parts * d_q].view(n_parts, 1, d_q) * scale
        self.__dict__["out_projection"] = unwrapped(of.out_projection)

    __call__ = MultiHeadAttention.forward

    def projected(self, x: Tensor) -> Tensor:
        """Return the query of x (B, T, d_model), and its key and value: (1 or 3, B * H, T, D)."""
        batch, length, d = x.shape
        parts = self.weight.size(0)
        projections = torch.baddbmm(self.shift, x.reshape(-1, d).expand(parts, -1, -1), self.weight)
        if length > 1:
            by_head = projections.view(parts, batch, length, self.n_heads, -1).transpose(2, 3)
            return self._normed(by_head.flatten(1, 2))
        return self._normed(projections.view(parts, batch * self.n_heads, 1, -1))

    def _normed(self, projections: Tensor) -> Tensor:
        """Return projections (1 or 3, B * H, T, D) with query and key normed, if at all."""
        if self.gains is None:
            return projections
        both = projections[:2]
        normed = F.rms_norm(both, both.shape[-1:], eps=self.eps) * self.gains
        return torch.cat([normed, projections[2:]])

    def project(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return query, key and value of x (B, T, d_model): (B * H, T, D) each."""
        return self.projected(x).unbind(0)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        """Return the weighted sums of values (B * H, Q, D), of few queries.

        k and v: (B * H, K, D), or (H, K, D) for all of the batch. mask: None, as it is part of
        ``bias``, broadcastable to (B * H, Q, K).
        """
        shape, n_heads = q.shape, self.n_heads
        is_shared = k.size(0) < shape[0]
        if is_shared:  # so that each head has one product
            q = q.view(-1, n_heads, *shape[1:]).transpose(0, 1).flatten(1, 2)
        scores = torch.bmm(q, k.mT) if bias is None else torch.baddbmm(bias, q, k.mT)
        heads = torch.bmm(self._weights(scores), v)
        if is_shared:
            heads = heads.view(n_heads, -1, *shape[1:]).transpose(0, 1).flatten(0, 1)
        return heads

    def _weights(self, scores: Tensor) -> Tensor:
        """Return the weights of scores (B * H or H, Q, K)."""
        if not self.has_sink:
            return scores.softmax(-1)
        sink = scores.new_zeros(self.n_heads) if self.sink is None else self.sink.logits
        by_head = scores.view(-1, self.n_heads, *scores.shape[1:])
        return masked_softmax(by_head, None, sink).flatten(0, 1)

    def merge(self, heads: Tensor) -> Tensor:
        """Concatenate heads (B * H, Q, D) and mix them: (B, Q, d_model)."""
        if heads.size(1) == 1:
            out: Tensor = self.out_projection(heads.view(-1, 1, self.widths[0]))
            return out
        return super().merge(heads.view(-1, self.n_heads, *heads.shape[1:]))


class SingleTokenBlock(Block):
    """A block with other attentions, whose other parts are called without hooks."""

    def __init__(
        self, of: Block, self_attention: Layer, cross_attention: Layer | None = None
    ) -> None:
        """The attentions stand in for those of the block."""
        nn.Module.__init__(self)
        self.training, self.norm_first = False, of.norm_first
        self.attention_skip, self.feed_forward_skip = of.attention_skip, of.feed_forward_skip
        self.__dict__ |= {"self_attention": self_attention, "cross_attention": cross_attention}
        names = ["self_attention_norm", "feed_forward", "feed_forward_norm"]
        if cross_attention is not None:
            names.append("cross_attention_norm")
        self.__dict__ |= {name: unwrapped(getattr(of, name)) for name in names}

    __call__ = Block.forward


def unwrapped(module: nn.Module) -> Layer:
    """Return a function that computes what a module without hooks does.

    The call of a module takes 3 µs, of the 17 of a small linear layer and of the 8 of a norm.
    """
    if type(module) is nn.Linear:
        matrix, shift = module.weight, module.bias
        return lambda x: F.linear(x, matrix, shift)
    if type(module) is nn.LayerNorm:
        shape, weight, bias, eps = module.normalized_shape, module.weight, module.bias, module.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    if type(module) is FeedForward and module.gate is None:
        up, activation, down = unwrapped(module.up), module.activation, unwrapped(module.down)
        return lambda x: down(activation(up(x)))
    if type(module) is TokenEmbedding:
        table, scale = module.table.weight, module.scale
        return lambda ids: torch.embedding(table, ids) * scale
    return module.forward
