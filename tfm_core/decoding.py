"""Decoding: from a model to the words it writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.models.captioner import Captioner
from tfm_core.models.recurrent import RecurrentTranslator
from tfm_core.models.text import EncoderDecoder, EncoderOnly, TextModel


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote: ids (B, T) up to and with <eos>, then padding; confidence (B, T)."""

    ids: Tensor
    confidence: Tensor


def greedy(model: TextModel | Captioner, src: Tensor, *, max_len: int) -> Written:
    """Write the likeliest token at each step, at most ``max_len`` tokens for each source.

    src: (B, S) ids, or pictures (B, C, H, W) for a captioner.

    confidence is the probability the model gave to each token it wrote, 0 in the padding.
    """
    (written,) = deque(greedy_steps(model, src, max_len=max_len), maxlen=1)
    return written


@torch.no_grad()
def greedy_steps(model: TextModel | Captioner, src: Tensor, *, max_len: int) -> Iterator[Written]:
    """Yield what is written after each token, (B, 1) to (B, T); see ``greedy``.

    An encoder-only model writes all positions at once, so it yields once; one that fills in hidden
    words copies the others, and is sure of them. The model's mode is put back before each step is
    handed out.
    """
    if max_len < 1:
        raise ValueError(f"max_len is {max_len}, but must be at least 1.")
    was_training = model.training
    model.eval()
    try:
        if isinstance(model, EncoderOnly):
            yield _at_once(model, src, max_len)
            return
        next_logits = _writer(model, src)
        tgt_in = torch.full((len(src), 1), BOS, device=src.device)
        confidence = torch.zeros(len(src), 0, device=src.device)
        done = torch.zeros(len(src), dtype=torch.bool, device=src.device)
        for _ in range(max_len):
            best, ids = next_logits(tgt_in).float().softmax(-1).max(-1)
            ids = ids.masked_fill(done, PAD)
            best = best.masked_fill(done, 0.0)
            tgt_in = torch.cat([tgt_in, ids[:, None]], 1)
            confidence = torch.cat([confidence, best[:, None]], 1)
            done = done | (ids == EOS)
            yield Written(tgt_in[:, 1:], confidence)
            if bool(done.all()):
                return
    finally:
        model.train(was_training)


def _writer(model: TextModel | Captioner, src: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function from what is written so far (B, T) to logits (B, vocabulary) of the next.

    The source is encoded once; a recurrent model reads each written token once, too.
    """
    if isinstance(model, RecurrentTranslator):
        source = model.encode(src)
        state = model.start(source)

        def step(tgt_in: Tensor) -> Tensor:
            nonlocal state
            logits, state = model.decode(tgt_in[:, -1:], source, state)
            return logits[:, -1]

        return step
    if isinstance(model, Captioner):
        seen = model.encode(src)
        return lambda tgt_in: model.decode(tgt_in, *seen)[:, -1]
    if isinstance(model, EncoderDecoder):
        memory, keep = model.encode(src)
        return lambda tgt_in: model.decode(tgt_in, memory, keep)[:, -1]
    if isinstance(model, Captioner):
        patches, _ = model.encode(src)
        return lambda tgt_in: model.decode(tgt_in, patches)[:, -1]
    return lambda tgt_in: model(src, tgt_in)[:, -1]


def _at_once(model: EncoderOnly, src: Tensor, max_len: int) -> Written:
    slots = src.new_full((len(src), max_len), BOS)
    best, ids = model(src, slots).float().softmax(-1).max(-1)
    if model.mask_id:
        given = F.pad(src, (0, max(0, max_len - src.size(1))), value=PAD)[:, :max_len]
        is_given = given != model.mask_id
        return Written(ids.where(~is_given, given), best.masked_fill(is_given, 1.0))
    ended = (ids == EOS).cumsum(1) - (ids == EOS).int() > 0  # strictly behind the first <eos>
    return Written(ids.masked_fill(ended, PAD), best.masked_fill(ended, 0.0))
