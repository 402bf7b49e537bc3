"""The layers of a trained block, laid out for single tokens.

With one token's vectors a product takes microseconds, so that what surrounds it is felt: every part
has a product of its own, on a matrix that lies ready for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block
from tfm_core.layers.feed_forward import FeedForward

Layer = Callable[[Tensor], Tensor]

FEWEST = 32
"""Keys that are read at least: a product with fewer is left to a slower kernel on the CPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """One attention's weights and, where it looks at a memory, what it keeps of that.

    weight: of query, key and value, (3, d_model, d_model), or of the query alone, (1, ...), that of
    the query divided by what scores are divided by; bias: of the same, (3 or 1, 1, d_model or 1);
    keys and values: of the memory, (N * H or H, S, D).
    """

    n_heads: int
    weight: Tensor
    bias: Tensor
    mix: Layer
    keys: Tensor | None = None
    values: Tensor | None = None

    @classmethod
    def to_itself(cls, of: MultiHeadAttention) -> Attention:
        """Keep nothing: keys grow with the text."""
        return cls(of.n_heads, *_by_part(of, 3), bare(of.out_projection))

    @classmethod
    def to_memory(cls, of: MultiHeadAttention, memory: Tensor, is_seen: Tensor | None) -> Attention:
        """Keep keys and values of memory (N, S, d_model), at least ``FEWEST`` of them.

        is_seen: (N, S, 1), False = padding; None: all of it.
        """
        weight, bias, d = of.in_projection.weight, of.in_projection.bias, of.d_model
        kept = F.linear(memory, weight[d:], None if bias is None else bias[d:])
        if is_seen is not None:
            kept = kept.where(is_seen, 0.0)  # who may look at nothing finds nothing
        kept = F.pad(kept, (0, 0, 0, max(0, FEWEST - kept.size(1))))
        kept = kept.view(*kept.shape[:2], 2, of.n_heads, -1).permute(2, 0, 3, 1, 4).flatten(1, 2)
        keys = kept[0].mT.contiguous().mT  # so that its product with single queries is faster
        return cls(of.n_heads, *_by_part(of, 1), bare(of.out_projection), keys, kept[1])

    def project(self, x: Tensor, n: int) -> Tensor:
        """Return of x (N * R, d_model) queries, and keys and values: (1 or 3, N * H, R, D)."""
        parts, d_head = len(self.weight), x.size(1) // self.n_heads
        made = torch.baddbmm(self.bias, x.expand(parts, *x.shape), self.weight)
        if n == 1:  # as all of that is laid out already
            return made.view(parts, -1, 1, d_head)
        by_head = made.view(parts, -1, n, self.n_heads, d_head).transpose(2, 3)
        return by_head.reshape(parts, -1, n, d_head)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Return what queries (N * H, R, D) find among keys and values (N * H, K, D).

        bias: added to scores, broadcastable to (N * H, R, K). Returns (N * R, d_model).
        """
        scores = torch.bmm(q, k.mT) if bias is None else torch.baddbmm(bias, q, k.mT)
        return self.merged(torch.bmm(scores.softmax(-1), v))

    def merged(self, heads: Tensor) -> Tensor:
        """Return (N * R, d_model) of what the heads found, (N * H, R, D)."""
        _, n, d_head = heads.shape
        if n == 1:
            return self.mix(heads.view(-1, self.n_heads * d_head))
        by_token = heads.view(-1, self.n_heads, n, d_head).transpose(1, 2)
        return self.mix(by_token.reshape(-1, self.n_heads * d_head))


def _by_part(of: MultiHeadAttention, n: int) -> tuple[Tensor, Tensor]:
    """Return matrices (n, d_model, d_model) and biases (n, 1, d_model or 1), the query's first.

    One product for each leaves queries, keys and values in one piece each.
    """
    weight, bias, d = of.in_projection.weight, of.in_projection.bias, of.d_model
    scale = weight.new_ones(n, 1, 1)
    scale[0] /= of.divisor
    by_part = weight[: n * d].view(n, d, d).mT * scale
    return by_part, scale - scale if bias is None else bias[: n * d].view(n, 1, d) * scale


def bare(module: nn.Module) -> Layer:
    """Return what a module without hooks computes, without the call around it.

    That takes 3 µs, of the 17 of a small linear layer and of the 8 of a norm.
    """
    if type(module) is nn.Linear:
        return partial(F.linear, weight=module.weight, bias=module.bias)
    if type(module) is nn.LayerNorm:
        scale, shift, eps = module.weight, module.bias, module.eps
        return lambda x: torch.layer_norm(x, module.normalized_shape, scale, shift, eps)
    if type(module) is FeedForward and module.gate is None:
        up, bend, down = bare(module.up), module.activation, bare(module.down)
        return lambda x: down(bend(up(x)))
    return module.forward


def bare_layers(block: Block) -> tuple[Layer, ...]:
    """Return the norm of each sublayer, and the feed-forward layer."""
    norms = [block.self_attention_norm, block.feed_forward_norm]
    if block.cross_attention is not None:
        norms.insert(1, block.cross_attention_norm)
    return tuple(bare(module) for module in (*norms, block.feed_forward))
