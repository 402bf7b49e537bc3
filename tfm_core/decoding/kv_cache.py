"""A decoder with a cache of keys and values, so that it reads each token once.

A causal decoder's vectors depend on no later token, so while a text grows, only the new tokens go
through the blocks; their queries meet the keys of all tokens before them (Shazeer 2019, section
2.4.1; in a language model also Radford et al. 2019's "past"). A step costs the products of one
token in place of those of the whole text.

The blocks are the model's own, laid out for single tokens (``single_token``): a cached attention
replaces keys and values, and positions are given to the attention as the relative kind gives them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.decoding.single_token import (
    MIN_KEYS,
    SingleTokenAttention,
    SingleTokenBlock,
    unwrapped,
)
from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Stack, tokens_at
from tfm_core.layers.masks import causal_mask, is_token, within
from tfm_core.layers.positions import LearnedPositions, NoPositions
from tfm_core.layers.relative import At, RelativeFunction, Turn
from tfm_core.models.pictures import Captioner
from tfm_core.models.text import DecoderOnly, EncoderDecoder

Decodes = DecoderOnly | EncoderDecoder | Captioner
Encoded = tuple[Tensor, Tensor | None]
"""The memory of a decoder, (N, S, d_model), and its mask (N, 1, 1, S), if there is one."""
CHUNK = 64
"""Positions by which the cache grows: keys that lie far apart take longer to read."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadPrompt:
    """A text that a language model has read already, as attention got it.

    ids: (N, T), without <bos>. layers: keys and values of each block, (N, H, T + 1, D).
    """

    ids: Tensor
    layers: Sequence[tuple[Tensor, Tensor]]


def supports_cache(model: Decodes) -> bool:
    """Return whether keys and values may be cached: they depend on no later token.

    Not with a wrong causal mask, not in training, where each reading has its own dropout, and not
    while a recorder or an intervention is active, or a module was changed: a cached key passes no
    hook point and no replaced ``forward``.
    """
    return (
        model.order_mask is causal_mask
        and not model.training
        and not recorder.active()
        and isinstance(model.decoder, Stack)
        and all(_has_own_code(block) for block in model.decoder.layers)
        and not any(_is_changed(module) for module in model.modules())
    )


def _has_own_code(block: nn.Module) -> bool:
    if not isinstance(block, Block) or type(block).forward is not Block.forward:
        return False
    attentions = (block.self_attention, block.cross_attention)
    forwards = (type(each).forward for each in attentions if each is not None)
    return all(forward is MultiHeadAttention.forward for forward in forwards)


def _is_changed(module: nn.Module) -> bool:
    """Return whether a module has a hook, or a method that replaces one of its class."""
    if module._forward_hooks or module._forward_pre_hooks:
        return True
    attributes = vars(module).items()
    return any(callable(value) and hasattr(type(module), name) for name, value in attributes)


@dataclass(slots=True, eq=False)
class _Cache:
    """Keys and values of all layers: (layers, 2, N, H, L, D), for a capacity of L positions.

    at: where the R new tokens stand, one slice for all texts or (N, R); turn: what queries and keys
    go through there; windows: of each layer, as a stack has them; keys: by window the K positions
    that are read. layers: of each layer, keys and values
    (N * H, L, D).
    """

    is_zeroed: bool
    windows: tuple[int, ...]
    n_heads: int
    capacity: int = 0
    at: At = field(default_factory=lambda: slice(0))
    turn: Turn | None = None
    keys: dict[int, slice] = field(default_factory=dict)
    values: Tensor | None = None
    layers: list[tuple[Tensor, ...]] = field(default_factory=list)

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values (N * H, R, D) and return those to read, (N * H, K, D)."""
        if self.values is None:
            n = k.size(0) // self.n_heads
            sizes = (len(self.windows), 2, n, self.n_heads, self.capacity, k.size(-1))
            self.set(self._unwritten(k, sizes))
        keys, values = self.layers[layer]
        if isinstance(self.at, slice):
            keys[:, self.at], values[:, self.at] = k, v
        else:
            at = self.at.repeat_interleave(self.n_heads, 0)[..., None].expand_as(k)
            keys.scatter_(1, at, k)
            values.scatter_(1, at, v)
        read = self.keys[self.windows[layer]]
        return keys[:, read], values[:, read]

    def set(self, values: Tensor) -> None:
        """Replace all keys and values, (layers, 2, N, H, L, D)."""
        self.values = values
        self.layers = [of_layer.unbind(0) for of_layer in values.flatten(2, 3).unbind(0)]

    def grow(self, capacity: int) -> None:
        """Enlarge the cache to a capacity."""
        before, self.capacity = self.capacity, capacity
        if self.values is not None:
            sizes = (*self.values.shape[:4], capacity, self.values.size(-1))
            larger = self._unwritten(self.values, sizes)
            larger[..., :before, :] = self.values
            self.set(larger)

    def _unwritten(self, like: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Return room for keys and values, zero wherever it is read before it is written.

        These are the first keys, and those between texts of unequal lengths (``is_zeroed``). They
        are masked, but a weight of zero times NaN would still be NaN.
        """
        if self.is_zeroed:
            return like.new_zeros(sizes)
        room = like.new_empty(sizes)
        room[..., :MIN_KEYS, :] = 0.0
        return room


class _SelfAttention(SingleTokenAttention):
    """Attends from the new tokens to themselves and to all before them."""

    def __init__(self, of: MultiHeadAttention, cache: _Cache, layer: int) -> None:
        super().__init__(of)
        self.cache, self.layer = cache, layer

    def project(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the new queries, and all keys and values: each key is turned once, then cached."""
        projections = self.projected(x)
        if self.cache.turn is None:
            q, k, v = projections.unbind(0)
        else:
            (q, k), v = self.cache.turn(projections[:2]).unbind(0), projections[2]
        return q, *self.cache.write(self.layer, k, v)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        if q.size(1) == 1:
            return super().attend(q, k, v, mask, bias)
        q, k, v = (part.view(-1, self.n_heads, *part.shape[1:]) for part in (q, k, v))
        return MultiHeadAttention.attend(self, q, k, v, mask, bias).flatten(0, 1)


class _CrossAttention(SingleTokenAttention):
    """Attends to a memory, whose keys and values are cached: (N * H or H, S, D).

    bias: what padding adds to the scores, (N * H, 1, S) or (1, 1, S); None without padding.
    """

    def __init__(self, of: MultiHeadAttention, memory: Tensor, mask: Tensor | None) -> None:
        """memory: (N or 1, S, d_model), mask: (N or 1, 1, 1, S), False = padding."""
        super().__init__(of, n_parts=1)
        is_padded = mask is not None and not bool(mask.all())
        n, length, missing = len(memory), memory.size(1), max(0, MIN_KEYS - memory.size(1))
        k, v = of.project(memory)[1:]
        if mask is not None and is_padded:  # a query that may attend to nothing gets zeros
            k, v = (part.where(mask.mT, 0.0) for part in (k, v))
        self.k, self.v = (F.pad(part, (0, 0, 0, missing)).flatten(0, 1) for part in (k, v))
        self.k = self.k.mT.contiguous().mT  # its product with single queries is faster
        self.bias: Tensor | None = None
        if is_padded or missing:
            if mask is None:
                mask = torch.ones(1, 1, 1, length, dtype=torch.bool, device=memory.device)
            mask = F.pad(mask, (0, missing))
            mask = mask[:1] if bool((mask == mask[:1]).all()) else mask
            bias = _masked(memory.new_zeros(()), mask)
            self.bias = _by_head(bias, n, of.n_heads)

    def project(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.projected(x)[0], self.k, self.v

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        return super().attend(q, k, v, mask, self.bias)

    def choose(self, rows: Tensor) -> None:
        """Continue with the memories of these rows."""
        heads = torch.arange(self.n_heads, device=rows.device)
        rows = (rows[:, None] * self.n_heads + heads).flatten()
        self.k, self.v = self.k.mT[rows].mT, self.v[rows]
        if self.bias is not None and len(self.bias) > 1:
            self.bias = self.bias[rows]


def _by_head(bias: Tensor, n: int, n_heads: int) -> Tensor:
    """Return a bias (N or 1, H or 1, Q, K) as (1, Q, K) for all heads, or as (N * H, Q, K)."""
    if bias.size(0) == bias.size(1) == 1:
        return bias[0]
    return bias.expand(n, n_heads, -1, -1).flatten(0, 1)


def _masked(bias: Tensor, mask: Tensor) -> Tensor:
    """Return a bias with the lowest finite number where ``mask`` is False."""
    return bias.masked_fill(~mask, torch.finfo(bias.dtype).min)


def _with_bias(q: Tensor, k: Tensor, *, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries and keys, which are turned already, with what is added to their scores."""
    return q, k, bias


def _by_text(turn: Turn, n: int, x: Tensor) -> Tensor:
    """Turn queries and keys (2, N * H, R, D), each text by its own positions."""
    return turn(x.view(2, n, -1, *x.shape[2:])).flatten(1, 2)


class CachedDecoder:
    """Returns the logits of the next token; see ``NextLogits``, whose rules its calls follow.

    A step of one token needs no mask where all texts stand at one position and none holds padding
    within: it may attend to all cached keys.
    """

    def __init__(self, model: Decodes, src: Tensor, encoded: Encoded | None) -> None:
        """src: ids of a decoder-only model, (N, S) or (1, S). encoded: of all others."""
        self.model = model
        self.has_one_source = len(src) == 1 or (encoded is None and not src.size(1))
        if encoded is None:
            self.src = src[:, : int(is_token(src, model.pad_id).sum(1).max())]
        else:
            self.src = torch.zeros(1, 0, dtype=torch.int64, device=encoded[0].device)
        self.lengths = is_token(self.src, model.pad_id).sum(1, keepdim=True)  # (N or 1, 1)
        self.n_before = self.src.size(1)  # the longest of them
        self.is_aligned = bool((self.lengths == self.n_before).all())
        self.is_full = self.is_aligned  # whether no unfinished text holds padding
        blocks = [block for block in model.decoder.layers if isinstance(block, Block)]
        self.n_heads = blocks[0].self_attention.n_heads
        self.cache = _Cache(not self.is_aligned, model.decoder.windows, n_heads=self.n_heads)
        self.memories = [
            _CrossAttention(block.cross_attention, *encoded)
            for block in blocks
            if block.cross_attention is not None and encoded is not None
        ]
        self.blocks = [
            SingleTokenBlock(
                block,
                _SelfAttention(block.self_attention, self.cache, layer),
                self.memories[layer] if self.memories else None,
            )
            for layer, block in enumerate(blocks)
        ]
        final_norm = model.decoder.final_norm
        self.final_norm = None if final_norm is None else unwrapped(final_norm)
        self.embed, self.output = unwrapped(model.tgt_embedding), unwrapped(model.output)
        self.is_key = torch.empty(0, 0, dtype=torch.bool)  # (N, L): no padding
        self.orders: dict[int, Tensor] = {}  # by window: keys of a query, (L, L), padding too
        self.placed: Tensor | None = None  # what a position adds to a token, (L, d_model)
        self.ids = torch.empty(0, 0, dtype=torch.int64)  # (N, T): of the call before
        self.n_read = 0  # of their tokens, <bos> included

    def __call__(self, ids: Tensor, parents: Tensor | None = None) -> Tensor:
        """Return (N, V) for ids (N, T) behind <bos>."""
        with torch.inference_mode():  # which spares the bookkeeping of every view
            logits = self._next(ids, parents)
        return logits.clone()  # the caller may change it, in inference mode or not

    def remember(self, prompt: ReadPrompt) -> None:
        """Take over what was read of a text, but for the last token, which tells the next one.

        For a model without a source that has read nothing yet.
        """
        ids = prompt.ids[:, :-1]
        length, windows = 1 + ids.size(1), self.cache.windows
        self._grow(len(ids), length)
        tokens = is_token(ids, self.model.pad_id)
        self.is_full = bool(tokens.all())
        self.is_key[:, 1:length] = tokens
        self.cache.at = slice(0, length)
        self.cache.keys = dict.fromkeys(windows, self.cache.at)
        for layer, (k, v) in enumerate(prompt.layers):
            self.cache.write(layer, *(part[:, :, :length].flatten(0, 1) for part in (k, v)))
        self.ids, self.n_read = ids, length

    def _next(self, ids: Tensor, parents: Tensor | None) -> Tensor:
        if self.n_read and parents is not None:
            self._choose(parents, ids[:, : self.ids.size(1)])
        length = self.n_before + 1 + ids.size(1)
        self._grow(len(ids), length)
        x, tokens = self._embedded(ids)
        if self.is_full and not bool(tokens.all()):  # logits behind an end are never read
            has_ended = (ids == self.model.eos_id).any(1, keepdim=True)
            self.is_full = bool((tokens | has_ended).all())
        x, relatives = self._placed(x, tokens, length)
        for block, window in zip(self.blocks, self.cache.windows, strict=True):
            x = block(x, relative=relatives[window])
        x = x if self.final_norm is None else self.final_norm(x)
        if self.n_read or self.is_aligned:
            x = x[:, -1]
        else:
            x = tokens_at(x, (self.lengths + ids.size(1)).expand(len(ids), 1))[:, 0]
        self.ids, self.n_read = ids, 1 + ids.size(1)
        return self.output(x).float()

    def _choose(self, rows: Tensor, ids: Tensor) -> None:
        """Go on from these rows of the call before, whose ids (N, T) are given.

        Of one source, texts differ from where their ids do, so that only that much is moved.
        """
        cached = self.cache.values
        assert cached is not None
        n, length = len(rows), self.n_before + self.n_read
        if not self.has_one_source:
            for memory in self.memories:
                memory.choose(rows)
            self.lengths = self.lengths[rows] if len(self.lengths) > 1 else self.lengths
        if not self.has_one_source or n > len(self.ids):
            self.cache.set(cached.index_select(2, rows))
            self.is_key = self.is_key[rows]
            return
        n_same = int((self.ids[:n] == ids).all(0).long().cumprod(0).sum())
        moved = slice(self.n_before + 1 + n_same, length)
        if moved.start < length:
            cached[:, :, :n, :, moved] = cached[..., moved, :].index_select(2, rows)
            self.is_key[:n, moved] = self.is_key[rows, moved]
        self.cache.set(cached[:, :, :n])
        self.is_key = self.is_key[:n]

    def _grow(self, n: int, length: int) -> None:
        """Make room for ``length`` positions of n texts, and tables for as many."""
        if length <= self.is_key.size(1) and (self.placed is None or length <= len(self.placed)):
            return
        model, weight = self.model, self.model.tgt_embedding.table.weight
        longest, before = CHUNK * math.ceil(length / CHUNK), self.is_key.size(1)
        self.cache.grow(longest)
        if self.n_read:
            self.is_key = F.pad(self.is_key, (0, longest - before), value=True)
        else:
            self.is_key = self.lengths.new_ones(n, longest, dtype=torch.bool)
        order = model.order_mask(longest, weight.device)
        self.orders = {one: within(order, longest, one) for one in self.cache.windows}
        added = model.positions if isinstance(model, DecoderOnly) else model.tgt_positions
        if isinstance(added, LearnedPositions):  # which refuses more than its table has
            longest = max(length, min(longest, len(added.table)))
        if not isinstance(added, NoPositions):
            self.placed = added(weight.new_zeros(1, longest, weight.size(1)))[0]

    def _embedded(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors (N, R, d_model) without positions, and whether they are tokens (N, R).

        R: of all that was not read yet; at first of the source of a decoder-only model too.
        """
        model = self.model
        new = ids[:, self.n_read - 1 :] if self.n_read else F.pad(ids, (1, 0), value=model.bos_id)
        if isinstance(model, DecoderOnly) and not self.n_read:
            src = self.src.expand(len(ids), -1) if self.has_one_source else self.src
            x, is_new, _lengths = model._joined(src, new)
            return x, is_new
        return self.embed(new), is_token(new, model.pad_id)

    def _placed(
        self, x: Tensor, tokens: Tensor, length: int
    ) -> tuple[Tensor, dict[int, RelativeFunction | None]]:
        """Add positions to new vectors (N, R, d_model); return them, and those of attention.

        tokens: (N, R), False = padding. What acts in attention is returned by window.
        """
        n, capacity = x.size(1), self.is_key.size(1)
        at: At = slice(length - n, length)
        if self.n_read and not self.is_aligned:
            last = torch.arange(length - n, length, device=x.device)
            at = last - self.n_before + self.lengths  # (N, n)
            self.is_key.scatter_(1, at, tokens)
        elif not self.is_full:
            self.is_key[:, at] = tokens
        relative, bias = self.model.decoder.relative, None
        self.cache.at = at
        if relative is not None:
            turn = relative.turn(x, capacity, at)
            self.cache.turn = turn if isinstance(at, slice) else partial(_by_text, turn, len(x))
            bias = relative.bias(x, capacity, at)
        relatives: dict[int, RelativeFunction | None] = {}
        for window in self.orders:
            first = 0
            if window and n == 1 and isinstance(at, slice):  # fewer keys, and no mask
                first = max(0, length - 1 - window)
            self.cache.keys[window] = slice(first, max(length, MIN_KEYS) if n == 1 else length)
            added = self._added(x, bias, length, window)
            relatives[window] = None if added is None else partial(_with_bias, bias=added)
        return x if self.placed is None else x + self.placed[at], relatives

    def _added(self, x: Tensor, bias: Tensor | None, length: int, window: int) -> Tensor | None:
        """Return what is added to the scores of new vectors (N, R, d_model): mask and bias."""
        n, at, keys = x.size(1), self.cache.at, self.cache.keys[window]
        if bias is not None:
            bias = bias[..., keys] if bias.ndim == 4 else bias[None, ..., keys]
        if n > 1 or not self.is_full or keys.stop > length:
            mask = self.orders[window][at][..., keys]
            mask = mask[:, None] if mask.ndim == 3 else mask[None, None]  # (N or 1, 1, R, K)
            if not self.is_full:
                mask = mask & self.is_key[:, None, None, keys]
            bias = _masked(x.new_zeros(()) if bias is None else bias, mask)
        if bias is not None and n == 1:
            bias = _by_head(bias, len(x), self.n_heads)
        return bias
