"""The three text topologies behind one contract: ``forward(src, tgt_in) -> (B, T, vocabulary)``.

``src`` (B, S) holds source ids, ``tgt_in`` (B, T) the target shifted right, starting with <bos>;
logits at position t predict target token t. Padding is ``pad_id`` on the right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.layers import recorder
from tfm_core.layers.blocks import Stack, tokens_at
from tfm_core.layers.masks import (
    causal_mask,
    check_source,
    is_token,
    padding_mask,
)
from tfm_core.models.ends import Pool, Segments, Side, SpecialTokens, TokenEmbedding
from tfm_core.models.recurrent import RecurrentTranslator

TextSide = Side[TokenEmbedding, Stack]
OrderMask = Callable[[int, torch.device], Tensor]
"""From a length to (length, length): which way a decoder may look along what it writes."""


class DecoderModel(Protocol):
    """The parts of a model that decodes a target with cross-attention to a memory."""

    tgt_embedding: TokenEmbedding
    tgt_positions: nn.Module
    decoder: Stack
    output: nn.Linear
    dropout: nn.Dropout
    pad_id: int | None
    order_mask: OrderMask


def decode_target(
    model: DecoderModel, tgt_in: Tensor, memory: Tensor, memory_mask: Tensor | None
) -> Tensor:
    """Return logits (B, T, vocabulary) for a target (B, T) seen only from the left.

    memory: (B, S, d_model) for cross-attention, with memory_mask over (B, H, T, S).
    """
    mask = padding_mask(tgt_in, model.pad_id) & model.order_mask(tgt_in.size(1), tgt_in.device)
    x = model.dropout(model.tgt_positions(model.tgt_embedding(tgt_in)))
    x = model.decoder(x, mask=mask, memory=memory, memory_mask=memory_mask)
    out: Tensor = model.output(x)
    recorder.record(model.output, answering=x, logits=out)
    return out


class EncoderDecoder(SpecialTokens, nn.Module):
    """The encoder reads the source; the decoder writes the target and attends to the source."""

    def __init__(
        self,
        source: TextSide,
        target: TextSide,
        output: nn.Linear,
        *,
        pad_id: int | None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.src_embedding, self.tgt_embedding = source.embedding, target.embedding
        self.src_positions, self.tgt_positions = source.positions, target.positions
        self.encoder, self.decoder, self.output = source.stack, target.stack, output
        self.dropout = nn.Dropout(dropout)
        self.pad_id = pad_id
        self.order_mask: OrderMask = causal_mask

    def encode(self, src: Tensor) -> tuple[Tensor, Tensor]:
        """Return memory (B, S, d_model) and the source padding mask (B, 1, 1, S).

        Raises ValueError for an empty source, S = 0.
        """
        check_source(src)
        keep = padding_mask(src, self.pad_id)
        x = self.dropout(self.src_positions(self.src_embedding(src)))
        return self.encoder(x, mask=keep), keep

    def decode(self, tgt_in: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary) for a target seen only from the left."""
        return decode_target(self, tgt_in, memory, memory_mask)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary)."""
        return self.decode(tgt_in, *self.encode(src))


class TextPooling(NamedTuple):
    """How one vector is made of a text; cls_id: the token put in front for it, if any."""

    pool: Pool
    cls_id: int | None = None


class EncoderOnly(SpecialTokens, nn.Module):
    """Reads the source and answers every position in one pass (BERT without its objective).

    The source is padded to the target's length; a padded position issues queries
    but is masked out as a key. ``tgt_in`` gives the length only; its content is not seen. With
    ``pooling`` there is one answer for the whole text, whatever its length.
    """

    def __init__(
        self,
        source: TextSide,
        output: nn.Module,
        *,
        pad_id: int | None,
        dropout: float = 0.0,
        segments: Segments | None = None,
        pooling: TextPooling | None = None,
        mask_id: int = 0,
    ) -> None:
        """mask_id: the token that hides a word; with it, the others are answers as they are."""
        super().__init__()
        self.src_embedding, self.src_positions = source.embedding, source.positions
        self.encoder, self.output = source.stack, output
        self.dropout = nn.Dropout(dropout)
        self.segments = segments
        self.pad_id, self.mask_id = pad_id, mask_id
        self.pool = None if pooling is None else pooling.pool
        self.cls_id = None if pooling is None else pooling.cls_id
        self.has_cls = self.cls_id is not None

    def forward(self, src: Tensor, tgt_in: Tensor, query_positions: Tensor | None = None) -> Tensor:
        """Return logits (B, T, vocabulary), or what the pooler says, (B, d_model).

        With ``pool`` T is 1. query_positions: (B, R), those whose logits alone are returned,
        (B, R, vocabulary), for a model without ``pool``.
        """
        length = tgt_in.size(1) if self.pool is None else 1
        src = F.pad(src, (int(self.has_cls), 0), value=self.cls_id or 0)
        keep = is_token(src, self.pad_id)
        slots = (0, max(0, length - src.size(1)))
        src, keep = F.pad(src, slots, value=self.pad_id or 0), F.pad(keep, slots)
        mask = keep[:, None, None, :]
        x = self.src_positions(self.src_embedding(src))
        x = self.dropout(x if self.segments is None else self.segments(x))
        is_recorded = recorder.is_wanted(self.output, {"answering", "logits"})
        if query_positions is not None and not is_recorded:
            few: Tensor = self.output(self.encoder.at(query_positions, x, mask=mask))
            return few
        if self.has_cls:
            first = src.new_zeros(len(src), 1)
            answering = self.encoder.at(first, x, mask=mask)
        else:
            x = self.encoder(x, mask=mask)
            answering = x[:, :length] if self.pool is None else self.pool(x, keep)
        out: Tensor = self.output(answering)
        recorder.record(self.output, answering=answering, logits=out)
        return out if query_positions is None else tokens_at(out, query_positions)


class DecoderOnly(SpecialTokens, nn.Module):
    """Reads source and target as one sequence, each token seeing only the past (GPT).

    Source and target words keep their own embedding tables, and the target follows the source
    directly, without padding between them. A language model has no source: src is (B, 0).
    """

    def __init__(
        self,
        *,
        src_embedding: TokenEmbedding,
        tgt_embedding: TokenEmbedding,
        positions: nn.Module,
        decoder: Stack,
        output: nn.Linear,
        pad_id: int | None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.src_embedding, self.tgt_embedding = src_embedding, tgt_embedding
        self.positions, self.decoder, self.output = positions, decoder, output
        self.dropout = nn.Dropout(dropout)
        self.pad_id = pad_id
        self.order_mask: OrderMask = causal_mask

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary)."""
        x, lengths = self.read(src, tgt_in)
        answers = lengths + torch.arange(tgt_in.size(1), device=src.device)  # (B, T)
        answering = tokens_at(x, answers)
        out: Tensor = self.output(answering)
        recorder.record(self.output, answering=answering, logits=out)
        return out

    def read(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the stack makes of both (B, S + T, d_model), and source lengths (B, 1)."""
        x, keep, lengths = self._joined(src, tgt_in)
        mask = keep[:, None, None, :] & self.order_mask(x.size(1), x.device)
        x = self.dropout(self.positions(x))
        return self.decoder(x, mask=mask), lengths

    def _joined(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return vectors (B, S + T, d_model), what is no padding (B, S + T), source lengths (B, 1).

        Without a source (S = 0), as in a language model, the target is the whole sequence.
        """
        lengths = is_token(src, self.pad_id).sum(1, keepdim=True)  # (B, 1)
        if not src.size(1):
            return self.tgt_embedding(tgt_in), is_token(tgt_in, self.pad_id), lengths
        positions = torch.arange(src.size(1) + tgt_in.size(1), device=src.device)[None]
        is_src = positions < lengths  # (B, S + T)
        from_src = positions.clamp(max=src.size(1) - 1).expand_as(is_src)
        from_tgt = positions - lengths
        is_tgt = (from_tgt >= 0) & (from_tgt < tgt_in.size(1))
        from_tgt = from_tgt.clamp(0, tgt_in.size(1) - 1)
        x = torch.where(
            is_src[..., None],
            self.src_embedding(src.gather(1, from_src)),
            self.tgt_embedding(tgt_in.gather(1, from_tgt)),
        )
        keep = is_src | (is_tgt & is_token(tgt_in.gather(1, from_tgt), self.pad_id))
        return x, keep, lengths


TextModel = EncoderDecoder | EncoderOnly | DecoderOnly | RecurrentTranslator
