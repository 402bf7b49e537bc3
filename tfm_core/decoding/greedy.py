"""Greedy decoding: the likeliest token at each step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.decoding.reading import reading
from tfm_core.models.pictures import Captioner
from tfm_core.models.text import EncoderOnly, TextModel
from tfm_core.sentences import StudentError


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a model wrote: ids (B, T) up to and with <eos>, then padding; confidence (B, T)."""

    ids: Tensor
    confidence: Tensor


def greedy(model: TextModel | Captioner, src: Tensor, *, max_len: int) -> Decoded:
    """Write the likeliest token at each step, at most ``max_len`` tokens for each source.

    src: (B, S) ids, or pictures (B, C, H, W) for a captioner.

    confidence is the probability the model gave to each token it wrote, 0 in the padding.
    """
    (decoded,) = deque(greedy_steps(model, src, max_len=max_len), maxlen=1)
    return decoded


@torch.no_grad()
def greedy_steps(model: TextModel | Captioner, src: Tensor, *, max_len: int) -> Iterator[Decoded]:
    """Yield what is written after each token, (B, 1) to (B, T); see ``greedy``.

    An encoder-only model writes all positions at once, so it yields once; one that fills in hidden
    words copies the others, and is sure of them. The model's mode is put back before each step is
    handed out.
    """
    if max_len < 1:
        raise StudentError("max_len is {max_len}; it must be at least 1.", max_len=max_len)
    was_training = model.training
    model.eval()
    try:
        if isinstance(model, EncoderOnly):
            yield _at_once(model, src, max_len)
            return
        next_logits, parents = reading(model, src), None
        written = torch.zeros(len(src), 0, dtype=torch.int64, device=src.device)
        confidence = torch.zeros(len(src), 0, device=src.device)
        done = torch.zeros(len(src), dtype=torch.bool, device=src.device)
        read = torch.arange(len(src), device=src.device)  # texts that are read on
        for _ in range(max_len):
            best, ids = next_logits(written[read], parents).softmax(-1).max(-1)
            if len(read) < len(src):  # the others ended
                ids = written.new_full((len(src),), model.fill_id).index_copy(0, read, ids)
                best = confidence.new_zeros(len(src)).index_copy(0, read, best)
            ids = ids.masked_fill(done, model.fill_id)
            best = best.masked_fill(done, 0.0)
            written = torch.cat([written, ids[:, None]], 1)
            confidence = torch.cat([confidence, best[:, None]], 1)
            done = done | (ids == model.eos_id)
            yield Decoded(written, confidence)
            n_open = int((~done).sum())
            if not n_open:
                return
            parents = None
            if n_open <= len(read) // 2:  # what is kept of the open ones is copied, so not for few
                parents = (~done[read]).nonzero()[:, 0]
                read = read[parents]
    finally:
        model.train(was_training)


def _at_once(model: EncoderOnly, src: Tensor, max_len: int) -> Decoded:
    slots = src.new_full((len(src), max_len), model.bos_id)
    best, ids = model(src, slots).float().softmax(-1).max(-1)
    if model.mask_id:
        padded = F.pad(src, (0, max(0, max_len - src.size(1))), value=model.fill_id)[:, :max_len]
        is_given = padded != model.mask_id
        return Decoded(ids.where(~is_given, padded), best.masked_fill(is_given, 1.0))
    is_end = ids == model.eos_id
    ended = is_end.cumsum(1) - is_end.int() > 0  # strictly behind the first <eos>
    return Decoded(ids.masked_fill(ended, model.fill_id), best.masked_fill(ended, 0.0))
