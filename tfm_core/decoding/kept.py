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

from tfm_core.data.vocabulary import BOS, EOS
from tfm_core.decoding.laid_out import FEWEST, Attention, bare, bare_layers
from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Stack, tokens_at
from tfm_core.layers.masks import causal_mask, is_token
from tfm_core.layers.positions import LearnedPositions, NoPositions
from tfm_core.layers.relative import HALF, Alibi, BucketBias, Rotation, apply_rotary
from tfm_core.models.captioner import Captioner
from tfm_core.models.text import DecoderOnly, EncoderDecoder

Decodes = DecoderOnly | EncoderDecoder | Captioner
Encoded = tuple[Tensor, Tensor | None]
"""What a decoder looks back at, (N, S, d_model), and its mask (N, 1, 1, S), if there is one."""
ROOM = 64
"""Positions that room is made for at a time: what lies wide apart takes longer to read."""


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
        and isinstance(model.decoder, Stack)
        and type(model.decoder.relative) in (type(None), Rotation, Alibi, BucketBias)
        and all(_is_usual(block) for block in model.decoder.layers)
        and not any(_is_changed(module) for module in model.modules())
    )


def _is_usual(block: nn.Module) -> bool:
    if type(block) is not Block:
        return False
    attentions = (block.self_attention, block.cross_attention)
    return all(isinstance(one, MultiHeadAttention) for one in attentions if one is not None)


def _is_changed(module: nn.Module) -> bool:
    """Return whether a module has a hook, or a method of its own in place of its class's."""
    if module._forward_hooks or module._forward_pre_hooks:
        return True
    own = vars(module).items()
    return any(callable(value) and hasattr(type(module), name) for name, value in own)


def _masked(bias: Tensor, mask: Tensor) -> Tensor:
    """Return what is added to scores, and the lowest finite number where nobody may look."""
    return bias.masked_fill(~mask, torch.finfo(bias.dtype).min)


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """One call: where its R new tokens stand, and what their queries may look at.

    n: R; at: their positions, or (N * H, R) where each text stands elsewhere; keys: the K positions
    read; bias: added to scores, or None: broadcastable to (N, H, R, K), of single queries to
    (N * H, 1, K); waves: a rotation's, (R, D / 2, 2) or (N * H, R, D / 2, 2).
    """

    n: int
    at: slice | Tensor
    keys: slice
    bias: Tensor | None
    waves: Tensor | None


class Kept:
    """Answers which token comes next; see ``NextLogits``, whose rules its calls follow.

    All keys and values lie in one room, by layer and position, which grows when it is full: new
    ones are written into it, and it is read in place. A step of one token needs no mask where all
    texts stand at one position and none holds padding within: all that is kept may be attended to.
    """

    def __init__(self, model: Decodes, src: Tensor, encoded: Encoded | None) -> None:
        """src: ids of a decoder-only model, (N, S) or (1, S). encoded: of all others."""
        self.model, self.relative, self.window = model, model.decoder.relative, model.window
        self.blocks = [block for block in model.decoder.layers if isinstance(block, Block)]
        self.layers = [bare_layers(block) for block in self.blocks]
        final_norm = model.decoder.final_norm
        self.final_norm = None if final_norm is None else bare(final_norm)
        self.output = bare(model.output)
        self.n_heads = self.blocks[0].self_attention.n_heads
        self.has_one_source = len(src) == 1 or (encoded is None and not src.size(1))
        self.attentions = [Attention.to_itself(block.self_attention) for block in self.blocks]
        self.looks: list[Attention] = []
        self.src_bias: Tensor | None = None  # what padding adds to its scores, (N, H, 1, S)
        if encoded is None:
            self.src = src[:, : int(is_token(src, model.pad_id).sum(1).max())]
        else:
            self.src = torch.zeros(1, 0, dtype=torch.int64, device=encoded[0].device)
            self._look_at(*encoded)
        self.lengths = is_token(self.src, model.pad_id).sum(1, keepdim=True)  # (N or 1, 1)
        self.n_before = self.src.size(1)  # the longest of them
        self.is_aligned = bool((self.lengths == self.n_before).all())
        self.is_full = self.is_aligned  # whether no padding stands in a text that did not end
        self.room = torch.empty(0)  # (layers, 2, N, H, L, D): keys and values
        self.rooms: list[Tensor] = []  # the same, one for each layer, (2, N * H, L, D)
        self.is_key = torch.empty(0, 0, dtype=torch.bool)  # (N, L): no padding
        self.placed: Tensor | None = None  # what a position adds to a token, (L, d_model)
        self.waves: Tensor | None = None  # a rotation's, (L, D / 2, 2)
        self.unturned = torch.empty(0)  # stands for L keys where their number alone is asked for
        self.ids = torch.empty(0, 0, dtype=torch.int64)  # (N, T): of the call before
        self.n_read = 0  # of their tokens, <bos> included

    def _look_at(self, memory: Tensor, mask: Tensor | None) -> None:
        """Keep keys and values of (N, S, d_model), with a mask (N, 1, 1, S)."""
        n, length = memory.shape[:2]
        is_seen = None if mask is None or bool(mask.all()) else mask[:, 0, 0, :, None]
        self.looks = [
            Attention.to_memory(block.cross_attention, memory, is_seen)
            for block in self.blocks
            if block.cross_attention is not None
        ]
        if is_seen is not None or length < FEWEST:
            if mask is None:
                mask = torch.ones(1, 1, 1, length, dtype=torch.bool, device=memory.device)
            mask = F.pad(mask, (0, max(0, FEWEST - length)))
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
        x, tokens = self._new(ids)
        if self.is_full and not bool(tokens.all()):  # behind an end nobody asks
            has_ended = (ids == EOS).any(1, keepdim=True)
            self.is_full = bool((tokens | has_ended).all())
        x, step = self._placed(x, tokens, length)
        x = self._through(x.flatten(0, 1), step).view(*x.shape)
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
        n, length = len(rows), self.n_before + self.n_read
        if not self.has_one_source:
            heads = torch.arange(self.n_heads, device=rows.device)
            by_head = (rows[:, None] * self.n_heads + heads).flatten()
            self.looks = [
                replace(look, keys=look.keys.mT[by_head].mT, values=look.values[by_head])
                for look in self.looks
                if look.keys is not None and look.values is not None
            ]
            if self.src_bias is not None and len(self.src_bias) > 1:
                self.src_bias = self.src_bias[by_head]
            self.lengths = self.lengths[rows] if len(self.lengths) > 1 else self.lengths
        if not self.has_one_source or n > len(self.ids):
            self._move(self.room.index_select(2, rows), self.is_key[rows])
            return
        n_same = int((self.ids[:n] == ids).all(0).long().cumprod(0).sum())
        moved = slice(self.n_before + 1 + n_same, length)
        if moved.start < length:
            self.room[:, :, :n, :, moved] = self.room[..., moved, :].index_select(2, rows)
            self.is_key[:n, moved] = self.is_key[rows, moved]
        self._move(self.room[:, :, :n], self.is_key[:n])

    def _move(self, room: Tensor, is_key: Tensor) -> None:
        self.room, self.is_key = room, is_key
        self.rooms = [of_layer.flatten(1, 2) for of_layer in room]

    def _make_room(self, n: int, length: int) -> None:
        """Make room for ``length`` positions of n texts, and tables for as many."""
        if length <= self.is_key.size(1) and (self.placed is None or length <= len(self.placed)):
            return
        model, weight = self.model, self.model.tgt_embedding.table.weight
        longest, before = ROOM * math.ceil(length / ROOM), self.is_key.size(1)
        if self.n_read:
            grown = self._unwritten(self.room, (*self.room.shape[:4], longest, self.room.size(-1)))
            grown[..., :before, :] = self.room
            self._move(grown, F.pad(self.is_key, (0, longest - before), value=True))
        else:
            self.is_key = self.lengths.new_ones(n, longest, dtype=torch.bool)
        self.unturned = weight.new_empty(1, 1, longest, 1)
        if isinstance(self.relative, Rotation):
            self.waves = self.relative.waves(longest, self.unturned)
        placing = model.positions if isinstance(model, DecoderOnly) else model.tgt_positions
        if isinstance(placing, LearnedPositions):  # which refuses more than its table has
            longest = max(length, min(longest, len(placing.table)))
        if not isinstance(placing, NoPositions):
            self.placed = placing(weight.new_zeros(1, longest, weight.size(1)))[0]

    def _unwritten(self, like: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Return room for keys and values, zero wherever it is read before it is written.

        That is among the first keys, and between texts of unequal lengths; masked, but not even a
        weight of zero makes a number of a NaN.
        """
        if not self.is_aligned:
            return like.new_zeros(sizes)
        room = like.new_empty(sizes)
        room[..., :FEWEST, :] = 0.0
        return room

    def _new(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors (N, R, d_model), of no position yet, and whether they are tokens (N, R).

        R: of all that was not read yet; at first of the source of a decoder-only model too.
        """
        model = self.model
        new = ids[:, self.n_read - 1 :] if self.n_read else F.pad(ids, (1, 0), value=BOS)
        if isinstance(model, DecoderOnly) and not self.n_read:
            src = self.src.expand(len(ids), -1) if self.has_one_source else self.src
            x, is_new, _lengths = model._joined(src, new)
            return x, is_new
        return model.tgt_embedding(new), is_token(new, model.pad_id)

    def _placed(self, x: Tensor, tokens: Tensor, length: int) -> tuple[Tensor, _Step]:
        """Put new vectors (N, R, d_model) where they stand, and say what their queries may see.

        tokens: (N, R), False = padding.
        """
        n, first, bias = x.size(1), 0, None
        at: slice | Tensor = slice(length - n, length)
        if self.n_read and not self.is_aligned:
            at = self._positions(n, length)
            self.is_key.scatter_(1, at, tokens)
        elif not self.is_full:
            self.is_key[:, at] = tokens
        if self.window and n == 1 and isinstance(at, slice):  # a window of keys, and no mask
            first = max(0, length - 1 - self.window)
        keys = slice(first, max(length, FEWEST) if n == 1 else length)
        if self.relative is not None and self.waves is None:
            positions = self._positions(n, length)
            bias = self.relative(self.unturned, self.unturned, positions)[2][..., keys]
        if n > 1 or not self.is_full or keys.stop > length:
            bias = self._causal(self._positions(n, length), keys, bias)
        if bias is not None and n == 1:
            bias = _by_head(bias, len(x), self.n_heads)
        x = x if self.placed is None else x + self.placed[at]
        waves = None if self.waves is None else self.waves[at]
        if isinstance(at, Tensor):
            at = at.repeat_interleave(self.n_heads, 0)
            waves = None if waves is None else waves.repeat_interleave(self.n_heads, 0)
        return x, _Step(n, at, keys, bias, waves)

    def _positions(self, n: int, length: int) -> Tensor:
        """Return where the n new tokens stand, (1 or N, n)."""
        last = torch.arange(length - n, length, device=self.lengths.device)[None]
        if self.n_read and not self.is_aligned:
            return last - self.n_before + self.lengths
        return last

    def _causal(self, positions: Tensor, keys: slice, bias: Tensor | None) -> Tensor:
        """Return a bias for queries at positions (1 or N, R) that masks what they may not see."""
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
        blocks = zip(self.blocks, self.layers, strict=True)
        for layer, (block, (*norms, feed_forward)) in enumerate(blocks):
            attend = partial(self._attend, layer, step)
            x = block.join(x, norms[0], attend, block.attention_skip)
            if self.looks:
                look = partial(self._look, layer, step)
                x = block.join(x, norms[1], look, block.attention_skip)
            x = block.join(x, norms[-1], feed_forward, block.feed_forward_skip)
        return x if self.final_norm is None else self.final_norm(x)

    def _attend(self, layer: int, step: _Step, x: Tensor) -> Tensor:
        """Attend from the new tokens to themselves and to all before them."""
        attention = self.attentions[layer]
        made = attention.project(x, step.n)
        if step.waves is not None:  # a key is turned once, by where it stands
            _turn(made[:2], step.waves)
        if not self.rooms:
            n, length = self.is_key.shape
            sizes = (len(self.blocks), 2, n, self.n_heads, length, made.size(-1))
            self._move(self._unwritten(made, sizes), self.is_key)
        room = self.rooms[layer]
        if isinstance(step.at, slice):
            room[:, :, step.at] = made[1:]
        else:
            room.scatter_(2, step.at[None, :, :, None].expand_as(made[1:]), made[1:])
        keys, values = room[:, :, step.keys].unbind(0)
        if step.n == 1:
            return attention.mixed(made[0], keys, values, step.bias)
        q = made[0].view(-1, self.n_heads, step.n, made.size(-1))
        keys, values = self.room[layer, :, :, :, step.keys].unbind(0)
        heads = F.scaled_dot_product_attention(q, keys, values, attn_mask=step.bias, scale=1.0)
        return attention.merged(heads.flatten(0, 1))

    def _look(self, layer: int, step: _Step, x: Tensor) -> Tensor:
        """Look at what was read; where all texts have one source, each query is one of its own."""
        look = self.looks[layer]
        assert look.keys is not None
        assert look.values is not None
        n = len(x) if len(look.keys) == self.n_heads else step.n
        return look.mixed(look.project(x, n)[0], look.keys, look.values, self.src_bias)


def _by_head(bias: Tensor, n: int, n_heads: int) -> Tensor:
    """Return a bias as single queries need it: one row for all of them, or one for each."""
    if bias.size(0) == bias.size(1) == 1:
        return bias[0]
    return bias.expand(n, n_heads, -1, -1).flatten(0, 1)


def _turn(x: Tensor, waves: Tensor) -> None:
    """Turn x as ``turned`` does, in place."""
    if x.dtype in HALF:
        x.copy_(apply_rotary(x, waves))
    else:
        pairs = torch.view_as_complex(x.view(*x.shape[:-1], -1, 2))
        pairs.mul_(torch.view_as_complex(waves))
