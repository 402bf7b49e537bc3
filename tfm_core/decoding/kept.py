"""A decoder that reads each token once: the keys and values of those before it are kept.

What a causal decoder makes of a token depends on nothing behind it, so while a text grows, only
the new tokens go through the blocks; their queries meet the keys of all that was read before
(Shazeer 2019, section 2.4.1; in a language model also Radford et al. 2019's "past"). A step costs
one token's products in place of the whole text's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.data.vocabulary import BOS
from tfm_core.layers import recorder
from tfm_core.layers.attention import MultiHeadAttention, attention_weights, fused_attention
from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.masks import causal_mask, is_token
from tfm_core.layers.relative import Rotation, turned
from tfm_core.models.captioner import Captioner
from tfm_core.models.text import DecoderOnly, EncoderDecoder

Decodes = DecoderOnly | EncoderDecoder | Captioner
Encoded = tuple[Tensor, Tensor | None]
"""What a decoder looks back at, (N, S, d_model), and its mask (N, 1, 1, S), if there is one."""


def can_keep(model: Decodes) -> bool:
    """Return whether keys and values may be kept: they depend on the tokens before them alone.

    Not where the causal mask is wrong on purpose, and not where somebody watches the model or has
    changed what one of its modules does: a kept key goes through neither a hook nor a replaced
    ``forward``.
    """
    return (
        model.order_mask is causal_mask
        and not recorder.active()
        and type(model.decoder) is Stack
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


class _Rows:
    """Keys or values by place: (N, H, K, D) in a room that doubles when it is full."""

    def __init__(self) -> None:
        self.room = torch.empty(0)
        self.length = 0

    def put(self, new: Tensor, positions: Tensor, length: int) -> Tensor:
        """Put new (N, H, R, D) at positions (N, R), and return the first ``length`` places."""
        if not self.length:
            self.room = new.new_zeros(*new.shape[:2], 2 * length, new.size(-1))
        elif self.room.size(2) < length:
            self.room = F.pad(self.room, (0, 0, 0, 2 * length - self.room.size(2)))
        self.room.scatter_(2, positions[:, None, :, None].expand_as(new), new)
        self.length = length
        return self.room[:, :, :length]

    def choose(self, rows: Tensor) -> None:
        """Go on with these rows."""
        self.room = self.room[rows]


@dataclass(slots=True, eq=False)
class _Layer:
    """What one block has seen: its keys and values, and those of the memory, (N, H, S, D)."""

    keys: _Rows
    values: _Rows
    memory: tuple[Tensor, Tensor] | None


class Kept:
    """Answers which token comes next; see ``NextLogits``, whose rules its calls follow."""

    def __init__(self, model: Decodes, src: Tensor, encoded: Encoded | None) -> None:
        """src: ids of a decoder-only model, (N, S) or (1, S). encoded: of all others."""
        self.model, self.src, self.encoded = model, src, encoded
        self.n_before = src.size(1) if isinstance(model, DecoderOnly) else 0
        self.layers: list[_Layer] = []
        self.is_key = src.new_zeros(0, 0, dtype=torch.bool)  # (N, K): no padding
        self.lengths = src.new_zeros(0, 1, dtype=torch.int64)  # (N, 1): of what is read before
        self.n_read = 0

    def __call__(self, ids: Tensor, parents: Tensor | None = None) -> Tensor:
        """Return (N, V) for ids (N, T) behind <bos>."""
        if self.n_read and parents is not None:
            self._choose(parents)
        tgt_in = torch.cat([ids.new_full((len(ids), 1), BOS), ids], 1)
        x, positions, tokens = self._new(tgt_in)
        self._note(positions, tokens, self.n_before + tgt_in.size(1))
        x = self._through(x, positions)
        self.n_read = tgt_in.size(1)
        answering = x[torch.arange(len(x), device=x.device), self._last(tgt_in, positions)]
        out: Tensor = self.model.output(answering)
        return out.float()

    def _choose(self, rows: Tensor) -> None:
        """Go on from these rows of the call before."""
        self.is_key, self.lengths = self.is_key[rows], self.lengths[rows]
        for layer in self.layers:
            layer.keys.choose(rows)
            layer.values.choose(rows)

    def _new(self, tgt_in: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return vectors (N, R, d_model), positions and whether it is a token, both (N, R).

        R: of all that was not read yet; at first of the source of a decoder-only model too.
        """
        model, n = self.model, len(tgt_in)
        new = tgt_in[:, self.n_read :]
        if isinstance(model, DecoderOnly) and not self.n_read:
            src = self.src.expand(n, -1) if len(self.src) == 1 else self.src
            x, is_new, self.lengths = model._joined(src, tgt_in)
            places = torch.arange(x.size(1), device=x.device).expand(n, -1)
            return model.dropout(model.positions(x)), places, is_new
        if not self.n_read:
            self.lengths = tgt_in.new_zeros(n, 1)
        behind = torch.arange(self.n_read, tgt_in.size(1), device=tgt_in.device)
        places = self.lengths + behind
        x = model.tgt_embedding(new)
        placed = model.positions if isinstance(model, DecoderOnly) else model.tgt_positions
        longest = self.n_before + tgt_in.size(1)
        rows = placed(x.new_zeros(1, longest, x.size(-1)))[0]  # what a place adds, to any token
        return model.dropout(x + rows[places]), places, is_token(new, model.pad_id)

    def _last(self, tgt_in: Tensor, positions: Tensor) -> Tensor:
        """Return where among the new ones the last token of each text stands, (N,)."""
        return (self.lengths + tgt_in.size(1) - 1 - positions[:, :1])[:, 0]

    def _note(self, positions: Tensor, tokens: Tensor, longest: int) -> None:
        """Note which of the new places hold a token that may be attended to."""
        known = self.is_key if self.n_read else tokens.new_zeros(len(tokens), 0)
        room = F.pad(known, (0, longest - known.size(1)))
        self.is_key = room.scatter(1, positions, tokens)

    def _through(self, x: Tensor, positions: Tensor) -> Tensor:
        decoder, window = self.model.decoder, self.model.window
        keys = torch.arange(self.is_key.size(1), device=x.device)
        mask = self.is_key[:, None, None] & (keys <= positions[:, None, :, None])
        if window:
            mask = mask & ((positions[:, None, :, None] - keys) <= window)
        for number, block in enumerate(decoder.layers):
            assert isinstance(block, Block)
            if number == len(self.layers):
                self.layers.append(self._first(block))
            layer = self.layers[number]
            attend = partial(self._attend, block.self_attention, layer, positions, mask)
            x = block._join(x, block.self_attention_norm, attend)
            if layer.memory is not None:
                look = partial(self._look, block.cross_attention, layer.memory)
                x = block._join(x, block.cross_attention_norm, look)
            x = block._join(x, block.feed_forward_norm, block.feed_forward)
        return decoder._normed(x)

    def _first(self, block: Block) -> _Layer:
        if not block.has_cross:
            return _Layer(_Rows(), _Rows(), None)
        assert self.encoded is not None
        memory = self.encoded[0]
        _query, key, value = block.cross_attention.project(memory[:, :1], memory)
        return _Layer(_Rows(), _Rows(), (key.contiguous(), value.contiguous()))

    def _attend(
        self,
        attention: MultiHeadAttention,
        layer: _Layer,
        positions: Tensor,
        mask: Tensor,
        x: Tensor,
    ) -> Tensor:
        q, k, v = attention.project(x)
        length, relative, bias = self.is_key.size(1), self.model.decoder.relative, None
        if isinstance(relative, Rotation):  # a key is turned once, by where it stands
            waves = relative.waves(length, k)[positions][:, None]
            q, k = turned(q, waves), turned(k, waves)
        keys = layer.keys.put(k, positions, length)
        if relative is not None and not isinstance(relative, Rotation):
            q, keys, bias = relative(q, keys, query_positions=positions)
        return _mixed(attention, q, keys, layer.values.put(v, positions, length), mask, bias)

    def _look(
        self, attention: MultiHeadAttention, memory: tuple[Tensor, Tensor], x: Tensor
    ) -> Tensor:
        assert self.encoded is not None
        weight, bias, d = attention.in_projection.weight, attention.in_projection.bias, x.size(-1)
        q = F.linear(x, weight[:d], None if bias is None else bias[:d])
        q = q.view(*x.shape[:2], attention.n_heads, -1).transpose(1, 2)
        k, v = (part.expand(len(x), -1, -1, -1) for part in memory)
        return _mixed(attention, q, k, v, self.encoded[1], None)


def _mixed(
    attention: MultiHeadAttention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
) -> Tensor:
    if q.size(2) == 1:  # of a single query, the fused kernel makes more work than it saves
        heads = attention_weights(q, k, mask, bias, divisor=attention.divisor) @ v
    else:
        heads = fused_attention(q, k, v, mask, bias, divisor=attention.divisor)
    out: Tensor = attention.out_projection(heads.transpose(1, 2).flatten(2))
    return out
