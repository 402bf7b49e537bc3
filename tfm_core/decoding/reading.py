"""Logits of the next token, from a model that has read its source once.

Each written token is read once, too, wherever keys and values can be cached (``kv_cache``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.decoding.kv_cache import (
    CachedDecoder,
    Decodes,
    Encoded,
    ReadPrompt,
    supports_cache,
)
from tfm_core.layers.recurrent import EncodedSource
from tfm_core.models.pictures import Captioner
from tfm_core.models.recurrent import RecurrentTranslator, State
from tfm_core.models.text import DecoderOnly, EncoderDecoder, EncoderOnly
from tfm_core.sentences import StudentError

Writes = DecoderOnly | EncoderDecoder | RecurrentTranslator | Captioner
"""A model that writes word by word."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """never: tokens that are not written. forced: position, 0 after <bos> -> token to write."""

    never: Sequence[int] = ()
    forced: Mapping[int, int] = field(default_factory=dict)

    def mask(self, logits: Tensor) -> Tensor:
        """Set the logits (N, V) of what is never written to -inf, in place."""
        logits[:, list(self.never)] = -math.inf
        return logits


class NextLogits(Protocol):
    """From what is written so far to the logits of the token that follows it."""

    def __call__(self, ids: Tensor, parents: Tensor | None = None) -> Tensor:
        """Return (N, V) for ids (N, T) behind <bos>.

        parents: (N,), which row of the call before each row goes on from; None: its own. Each call
        goes on from the one before it: its rows are rows of that one, with tokens behind them,
        each about the source that it was about. Of a row that holds <eos>, any answer will do.
        """


def reading(
    model: Writes, src: Tensor, *, context: int = 0, prompt: ReadPrompt | None = None
) -> NextLogits:
    """Read a source and return what answers which token comes next.

    src: (N, S) ids or pictures (N, C, H, W), one for each text, or a single one for all of them.
    context: positions that a decoder-only model reads at most, <bos> included; 0 is no limit.
    prompt: what every text begins with, where the model, without a source, has read that already.
    Raises ValueError, in a sentence, for a model that writes all at once.
    """
    if isinstance(model, EncoderOnly):
        raise StudentError("An encoder writes all positions at once, not token by token.")
    if isinstance(model, RecurrentTranslator):
        return _Recurrent(model, src)
    encoded = None if isinstance(model, DecoderOnly) else model.encode(src)
    whole = _Uncached(model, src, encoded, context)
    if not supports_cache(model):
        return whole
    cached = CachedDecoder(model, src, encoded)
    if prompt is not None and prompt.ids.size(1):
        cached.remember(prompt)

    def after(ids: Tensor, parents: Tensor | None = None) -> Tensor:
        slides = 0 < context < ids.size(1) + 1  # every token moves to another position then
        return whole(ids, parents) if slides else cached(ids, parents)

    return after


@torch.no_grad()
def next_logits(model: Writes, src: Tensor, ids: Tensor, context: int = 0) -> Tensor:
    """Return (N, V) for the token that follows ids (N, T); a context sees only the last tokens."""
    return reading(model, src, context=context)(ids)


class _Uncached:
    """A model without a cache: it reads the whole text again for each token."""

    def __init__(self, model: Decodes, src: Tensor, encoded: Encoded | None, context: int) -> None:
        """encoded: of all but a decoder-only model. context: as in ``reading``."""
        self.model, self.context = model, context
        self.source = (src,) if encoded is None else tuple(p for p in encoded if p is not None)

    def __call__(self, ids: Tensor, parents: Tensor | None = None) -> Tensor:
        """See ``NextLogits``."""
        self.source = tuple(_chosen(part, parents) for part in self.source)
        source = [_for_each(part, ids) for part in self.source]
        seen = ids[:, max(0, ids.size(1) - self.context + 1) :] if self.context else ids
        tgt_in = F.pad(seen, (1, 0), value=self.model.bos_id)
        if isinstance(self.model, DecoderOnly):
            logits: Tensor = self.model(source[0], tgt_in)
        else:
            logits = self.model.decode(tgt_in, *source)
        return logits[:, -1].float()


class _Recurrent:
    """A recurrent translator: its state is the memory, so each token is read once."""

    def __init__(self, model: RecurrentTranslator, src: Tensor) -> None:
        self.model, self.source = model, model.encode(src)
        self.state: State | None = None
        self.n_read = 0

    def __call__(self, ids: Tensor, parents: Tensor | None = None) -> Tensor:
        self.source = EncodedSource(*(_chosen(part, parents) for part in self.source))
        source = EncodedSource(*(_for_each(part, ids) for part in self.source))
        if self.state is not None and parents is not None:
            hidden, cells = ([part[parents] for part in parts] for parts in self.state)
            self.state = State(tuple(hidden), tuple(cells))
        tgt_in = torch.cat([ids.new_full((len(ids), 1), self.model.bos_id), ids], 1)[
            :, self.n_read :
        ]
        logits, self.state = self.model.decode(tgt_in, source, self.state)
        self.n_read += tgt_in.size(1)
        return logits[:, -1].float()


def _chosen(of_source: Tensor, rows: Tensor | None) -> Tensor:
    """Return what belongs to the sources (N, ...) of these rows; a single one is that of all."""
    return of_source if rows is None or len(of_source) == 1 else of_source[rows]


def _for_each(of_source: Tensor, ids: Tensor) -> Tensor:
    """Return what belongs to one source (1, ...) for each of N texts; (N, ...) stays."""
    if len(of_source) == len(ids):
        return of_source
    return of_source.expand(len(ids), *of_source.shape[1:])
