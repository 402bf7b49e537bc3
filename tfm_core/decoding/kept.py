"""A decoder that reads each token once: the keys and values of those before it are kept.

What a causal decoder makes of a token depends on nothing behind it, so while a text grows, only
the new tokens go through the blocks; their queries meet the keys of all that was read before
(Shazeer 2019, section 2.4.1; in a language model also Radford et al. 2019's "past"). A step costs
one token's products in place of the whole text's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.data.vocabulary import BOS
from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Stack, tokens_at
from tfm_core.layers.masks import causal_mask, is_token
from tfm_core.layers.positions import LearnedPositions, NoPositions
from tfm_core.layers.relative import Alibi, BucketBias, Rotation, turned
from tfm_core.models.captioner import Captioner
from tfm_core.models.text import DecoderOnly, EncoderDecoder

Decodes = DecoderOnly | EncoderDecoder | Captioner
Encoded = tuple[Tensor, Tensor | None]
"""What a decoder looks back at, (N, S, d_model), and its mask (N, 1, 1, S), if there is one."""

FEWEST = 32
"""Keys that are read at least: a product with fewer is left to a slower kernel on the CPU."""


def can_keep(model: Decodes) -> bool:
    """Return whether keys and values may be kept: they depend on the tokens before them alone.

    Not where the causal mask is wrong on purpose, not in training, where dropout is drawn anew for
    each reading, and not where somebody watches the model or has changed what one of its modules
    does: a kept key goes through neither a hook nor a replaced ``forward``.
    """
    return (
        model.order_mask is causal_mask
        and not model.training
        and not recorder.active()
        and type(model.decoder) is Stack
        and type(model.decoder.relative) in (type(None), Rotation, Alibi, BucketBias)
        and all(_is_usual(block) for block in model.decoder.layers)
        and not any(_is_changed(module) for module in model.modules())
    )


def _is_usual(block: nn.Module) -> bool:
    if type(block) is not Block:
        return False
    attentions = [block.self_attention, *([block.cross_attention] if block.has_cross else [])]
    return all(type(attention) is MultiHeadAttention for attention in attentions)


def _is_changed(module: nn.Module) -> bool:
    """Return whether a module has a hook, or a method of its own in place of its class's."""
    if module._forward_hooks or module._forward_pre_hooks:
        return True
    own = vars(module).items()
    return any(callable(value) and hasattr(type(module), name) for name, value in own)


@dataclass(frozen=True, slots=True, eq=False)
class _Attention:
    """One attention's weights and, where it looks at a memory, what it keeps of that.

    weight: of query, key and value, or of the query alone; memory: keys and values,
    (2, N or 1, H, S, D).
    """

    n_heads: int
    weight: Tensor
    bias: Tensor | None
    scale: float
    mix: nn.Module
    memory: Tensor | None = None

    @classmethod
    def to_itself(cls, of: MultiHeadAttention) -> _Attention:
        """Keep nothing: keys grow with the text."""
        made = of.in_projection
        return cls(of.n_heads, made.weight, made.bias, _scale(of), of.out_projection)

    @classmethod
    def to_memory(cls, of: MultiHeadAttention, memory: Tensor, is_seen: Tensor) -> _Attention:
        """Keep keys and values of memory (N, S, d_model); is_seen: (N, S, 1), False = padding."""
        weight, bias, d = of.in_projection.weight, of.in_projection.bias, of.d_model
        query_bias, key_bias = (None, None) if bias is None else (bias[:d], bias[d:])
        kept = F.linear(memory, weight[d:], key_bias)
        kept = kept.where(is_seen, 0.0)  # who may look at nothing finds nothing
        kept = kept.view(*memory.shape[:2], 2, of.n_heads, -1).permute(2, 0, 3, 1, 4).contiguous()
        return cls(of.n_heads, weight[:d], query_bias, _scale(of), of.out_projection, kept)

    def project(self, x: Tensor, n: int) -> Tensor:
        """Return of x (N * R, d_model) queries, and keys and values: (N, R, 1 or 3, H, D)."""
        made = F.linear(x, self.weight, self.bias)
        return made.view(-1, n, made.size(1) // x.size(1), self.n_heads, x.size(1) // self.n_heads)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Return what queries (N, H, R, D) find among keys and values: (N * R, d_model).

        bias: added to scores, broadcastable to (N, H, R, K); of single queries that size, or
        (1, 1, 1, K).
        """
        if q.size(2) == 1:  # the fused kernel makes more work of it than it saves
            flat, keys, values = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
            added, beta = (q.new_zeros(1), 0) if bias is None else (bias.flatten(0, 1), 1)
            scores = torch.baddbmm(added, flat, keys.mT, beta=beta, alpha=self.scale)
            heads = torch.bmm(scores.softmax(-1), values).view_as(q)
        else:
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scale)
        out: Tensor = self.mix(heads.transpose(1, 2).flatten(0, 1).flatten(1))
        return out


def _scale(attention: MultiHeadAttention) -> float:
    if attention.divisor is not None:
        return 1 / attention.divisor
    return 1 / math.sqrt(attention.d_model // attention.n_heads)


def _masked(bias: Tensor, mask: Tensor) -> Tensor:
    """Return what is added to scores, and the lowest finite number where nobody may look."""
    return bias.masked_fill(~mask, torch.finfo(bias.dtype).min)


def _by_head(bias: Tensor, n: int, n_heads: int) -> Tensor:
    """Return a bias as single queries need it: one row for all of them, or one for each."""
    if bias.size(0) == bias.size(1) == 1:
        return bias
    return bias.expand(n, n_heads, -1, -1).contiguous()


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """One call: where its R new tokens stand, and what their queries may look at.

    n: R; at: their positions, or (N, R) where each text stands elsewhere; keys: the K positions
    read; bias: added to scores, broadcastable to (N, H, R, K), or None; waves: a rotation's,
    (1 or N, R, 1, 1, D / 2, 2).
    """

    n: int
    at: slice | Tensor
    keys: slice
    bias: Tensor | None
    waves: Tensor | None


class Kept:
    """Answers which token comes next; see ``NextLogits``, whose rules its calls follow.

    All keys and values lie in one room, by layer and position, which doubles when it is full: new
    ones are written into it, and it is read in place. A step of one token needs no mask where all
    texts stand at one position and none holds padding: all that is kept may be attended to.
    """

    def __init__(self, model: Decodes, src: Tensor, encoded: Encoded | None) -> None:
        """src: ids of a decoder-only model, (N, S) or (1, S). encoded: of all others."""
        self.model, self.relative, self.window = model, model.decoder.relative, model.window
        self.blocks = [block for block in model.decoder.layers if isinstance(block, Block)]
        self.n_heads = self.blocks[0].self_attention.n_heads
        self.has_one_source = len(src) == 1 or (encoded is None and not src.size(1))
        self.attentions = [_Attention.to_itself(block.self_attention) for block in self.blocks]
        self.looks: list[_Attention] = []
        self.src_bias: Tensor | None = None  # what padding adds to its scores, (N, H, 1, S)
        if encoded is None:
            self.src = src[:, : int(is_token(src, model.pad_id).sum(1).max())]
        else:
            self.src = torch.zeros(1, 0, dtype=torch.int64, device=encoded[0].device)
            self._look_at(*encoded)
        self.lengths = is_token(self.src, model.pad_id).sum(1, keepdim=True)  # (N or 1, 1)
        self.n_before = self.src.size(1)  # the longest of them
        self.is_aligned = bool((self.lengths == self.n_before).all())
        self.is_full = self.is_aligned  # whether no padding stands among what is kept either
        self.room = torch.empty(0)  # (layers, 2, N, H, L, D): keys and values
        self.is_key = torch.empty(0, 0, dtype=torch.bool)  # (N, L): no padding
        self.placed: Tensor | None = None  # what a position adds to a token, (L, d_model)
        self.unturned = torch.empty(0)  # stands for L keys where their number alone is asked for
        self.ids = torch.empty(0, 0, dtype=torch.int64)  # (N, T): of the call before
        self.n_read = 0  # of their tokens, <bos> included

    def _look_at(self, memory: Tensor, mask: Tensor | None) -> None:
        """Keep keys and values of (N, S, d_model), with a mask (N, 1, 1, S)."""
        n, length = memory.shape[:2]
        if mask is None:
            mask = torch.ones(1, 1, 1, length, dtype=torch.bool, device=memory.device)
        more = max(0, FEWEST - length)
        memory, mask = F.pad(memory, (0, 0, 0, more)), F.pad(mask, (0, more))
        self.looks = [
            _Attention.to_memory(block.cross_attention, memory, mask[:, 0, 0, :, None])
            for block in self.blocks
        ]
        if not bool(mask.all()):
            mask = mask[:1] if bool((mask == mask[:1]).all()) else mask
            self.src_bias = _by_head(_masked(memory.new_zeros(()), mask), n, self.n_heads)

    def __call__(self, ids: Tensor, parents: Tensor | None = None) -> Tensor:
        """Return (N, V) for ids (N, T) behind <bos>."""
        with torch.inference_mode():  # which spares the bookkeeping of every view
            logits = self._next(ids, parents)
        return logits.clone()  # the caller may change it, in inference mode or not

    def _next(self, ids: Tensor, parents: Tensor | None) -> Tensor:
        if self.n_read and parents is not None:
            self._choose(parents, ids[:, : self.ids.size(1)])
        length = self.n_before + 1 + ids.size(1)
        self._make_room(len(ids), length)
        x, positions, tokens = self._new(ids, length)
        step = self._step(positions, tokens, length)
        x = self._through(x.flatten(0, 1), step)
        if step.n > 1:
            last = (self.lengths + ids.size(1) - positions[:, :1]).expand(len(ids), 1)
            x = tokens_at(x.view(len(ids), step.n, -1), last)[:, 0]
        self.ids, self.n_read = ids, 1 + ids.size(1)
        out: Tensor = self.model.output(x)
        return out.float()

    def _choose(self, rows: Tensor, ids: Tensor) -> None:
        """Go on from these rows of the call before, whose ids (N, T) are given.

        Of one source, texts differ from where their ids do, so that only that much is moved.
        """
        n, length = len(rows), self.n_before + self.n_read
        if not self.has_one_source:
            self.looks = [
                replace(look, memory=look.memory[:, rows])
                for look in self.looks
                if look.memory is not None
            ]
            if self.src_bias is not None and len(self.src_bias) > 1:
                self.src_bias = self.src_bias[rows]
            self.lengths = self.lengths[rows] if len(self.lengths) > 1 else self.lengths
        if not self.has_one_source or n > len(self.ids):
            self.room, self.is_key = self.room.index_select(2, rows), self.is_key[rows]
            return
        n_same = int((self.ids[:n] == ids).all(0).long().cumprod(0).sum())
        moved = slice(self.n_before + 1 + n_same, length)
        if moved.start < length:
            self.room[:, :, :n, :, moved] = self.room[..., moved, :].index_select(2, rows)
            self.is_key[:n, moved] = self.is_key[rows, moved]
        self.room, self.is_key = self.room[:, :, :n], self.is_key[:n]

    def _make_room(self, n: int, length: int) -> None:
        """Make room for ``length`` positions of n texts, and tables for as many."""
        model, weight = self.model, self.model.tgt_embedding.table.weight
        if length > self.is_key.size(1):
            longest = max(FEWEST, 2 * length)
            more = longest - self.is_key.size(1)
            if self.n_read:
                self.room = F.pad(self.room, (0, 0, 0, more))
                self.is_key = F.pad(self.is_key, (0, more))
            else:
                self.is_key = self.lengths.new_zeros(n, longest, dtype=torch.bool)
            self.unturned = weight.new_empty(1, 1, longest, 1)
        placing = model.positions if isinstance(model, DecoderOnly) else model.tgt_positions
        is_there = self.placed is not None and length <= len(self.placed)
        if is_there or isinstance(placing, NoPositions):
            return
        longest = self.is_key.size(1)
        if isinstance(placing, LearnedPositions):  # which refuses more than its table has
            longest = max(length, min(longest, len(placing.table)))
        self.placed = placing(weight.new_zeros(1, longest, weight.size(1)))[0]

    def _new(self, ids: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return vectors (N, R, d_model), positions (1 or N, R) and whether tokens (N, R).

        R: of all that was not read yet; at first of the source of a decoder-only model too.
        """
        model, n, device = self.model, len(ids), ids.device
        new = ids[:, self.n_read - 1 :] if self.n_read else F.pad(ids, (1, 0), value=BOS)
        if isinstance(model, DecoderOnly) and not self.n_read:
            src = self.src.expand(n, -1) if self.has_one_source else self.src
            x, is_new, _lengths = model._joined(src, new)
            positions = torch.arange(x.size(1), device=device)[None]
        else:
            x, is_new = model.tgt_embedding(new), is_token(new, model.pad_id)
            behind = torch.arange(self.n_read, self.n_read + new.size(1), device=device)[None]
            positions = behind + (self.n_before if self.is_aligned else self.lengths)
        if self.placed is not None:
            x = x + self.placed[self._at(positions, length)]
        return x, positions, is_new

    def _at(self, positions: Tensor, length: int) -> slice | Tensor:
        """Return positions (N or 1, R) as an index: the last of all, where all texts are there."""
        if self.n_read and not self.is_aligned:
            return positions
        return slice(length - positions.size(1), length)

    def _step(self, positions: Tensor, tokens: Tensor, length: int) -> _Step:
        """Note which of the new places hold a token (N, R), and say what their queries may see."""
        n, first = tokens.size(1), 0
        at = self._at(positions, length)
        self.is_full = self.is_full and bool(tokens.all())
        if isinstance(at, slice):
            self.is_key[:, at] = tokens
            if self.window and n == 1:  # a window of keys in place of a mask
                first = max(0, length - 1 - self.window)
        else:
            self.is_key.scatter_(1, positions, tokens)
        waves = bias = None
        if isinstance(self.relative, Rotation):
            waves = self.relative.waves(self.is_key.size(1), self.unturned)
            waves = waves[at][..., None, None, :, :]
        elif self.relative is not None:
            bias = self.relative(self.unturned, self.unturned, positions)[2]
        keys = slice(first, max(length, FEWEST) if n == 1 else length)
        bias = self._bias(positions, keys, length, bias)
        if bias is not None and n == 1:
            bias = _by_head(bias, len(tokens), self.n_heads)
        return _Step(n, at, keys, bias, waves)

    def _bias(
        self, positions: Tensor, keys: slice, length: int, relative: Tensor | None
    ) -> Tensor | None:
        """Return what is added to scores, broadcastable to (N, H, R, K), None for nothing."""
        bias = None if relative is None else relative[..., keys]
        if positions.size(1) == 1 and self.is_full and keys.stop == length:
            return bias
        where = torch.arange(keys.start, keys.stop, device=positions.device)
        before = positions[:, None, :, None] - where  # how far before its query a key stands
        mask = before >= 0
        if not self.is_full:
            mask = mask & self.is_key[:, None, None, keys]
        if self.window:
            mask = mask & (before <= self.window)
        return _masked(self.unturned.new_zeros(()) if bias is None else bias, mask)

    def _through(self, x: Tensor, step: _Step) -> Tensor:
        """Pass the new tokens, (N * R, d_model), through all blocks."""
        for layer, block in enumerate(self.blocks):
            attend = partial(self._attend, layer, step)
            x = block._join(x, block.self_attention_norm, attend)
            if self.looks:
                x = block._join(x, block.cross_attention_norm, partial(self._look, layer, step))
            x = block._join(x, block.feed_forward_norm, block.feed_forward)
        return self.model.decoder._normed(x)

    def _attend(self, layer: int, step: _Step, x: Tensor) -> Tensor:
        """Attend from the new tokens to themselves and to all before them."""
        attention = self.attentions[layer]
        heads = attention.project(x, step.n)
        if step.waves is not None:  # a key is turned once, by where it stands
            heads[:, :, :2] = turned(heads[:, :, :2], step.waves)
        q, new = heads[:, :, 0].transpose(1, 2), heads[:, :, 1:].permute(2, 0, 3, 1, 4)
        if not self.room.numel():
            sizes = (len(self.attentions), *new.shape[:3], self.is_key.size(1), new.size(-1))
            self.room = new.new_zeros(sizes)
        room = self.room[layer]
        if isinstance(step.at, slice):
            room[:, :, :, step.at] = new
        else:
            room.scatter_(3, step.at[None, :, None, :, None].expand_as(new), new)
        keys, values = room[:, :, :, step.keys].unbind(0)
        return attention.mixed(q, keys, values, step.bias)

    def _look(self, layer: int, step: _Step, x: Tensor) -> Tensor:
        """Look at what was read; where all texts have one source, each query is one of its own."""
        look = self.looks[layer]
        assert look.memory is not None
        keys, values = look.memory.unbind(0)
        n = len(x) if len(keys) == 1 else step.n
        return look.mixed(look.project(x, n)[:, :, 0].transpose(1, 2), keys, values, self.src_bias)
