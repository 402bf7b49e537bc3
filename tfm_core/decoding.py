"""Decoding: from a model to the words it writes: greedily, by sampling, by beam search.

All of them yield step by step. A draw depends on the seed of its sample and the position alone, so
that writing on from where one stopped gives the same text as never having stopped.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.models.captioner import Captioner
from tfm_core.models.recurrent import RecurrentTranslator
from tfm_core.models.text import DecoderOnly, EncoderDecoder, EncoderOnly, TextModel
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
        raise StudentError("max_len is {max_len}, but must be at least 1.", max_len=max_len)
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
            yield Decoded(tgt_in[:, 1:], confidence)
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
    return lambda tgt_in: model(src, tgt_in)[:, -1]


def _at_once(model: EncoderOnly, src: Tensor, max_len: int) -> Decoded:
    slots = src.new_full((len(src), max_len), BOS)
    best, ids = model(src, slots).float().softmax(-1).max(-1)
    if model.mask_id:
        given = F.pad(src, (0, max(0, max_len - src.size(1))), value=PAD)[:, :max_len]
        is_given = given != model.mask_id
        return Decoded(ids.where(~is_given, given), best.masked_fill(is_given, 1.0))
    ended = (ids == EOS).cumsum(1) - (ids == EOS).int() > 0  # strictly behind the first <eos>
    return Decoded(ids.masked_fill(ended, PAD), best.masked_fill(ended, 0.0))


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How the model's distribution is changed before a token is drawn from it.

    temperature: logits are divided by it; 0 is greedy. top_k: keep so many of the likeliest, 0
    keeps all. top_p: keep the smallest set of the likeliest whose mass is at least p (nucleus
    sampling, Holtzman et al. 2020, section 3.1); 1 keeps all. Raises ValueError in a sentence.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError for settings that give no distribution."""
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise StudentError(
                "temperature is {temperature}, but must be 0 or more.",
                temperature=self.temperature,
            )
        if self.top_k < 0:
            raise StudentError("top_k is {top_k}, but must be 0 (all) or more.", top_k=self.top_k)
        if not 0 < self.top_p <= 1:
            raise StudentError(
                "top_p is {top_p}, but must be above 0 and at most 1.", top_p=self.top_p
            )


@dataclass(frozen=True, slots=True, eq=False)
class SampleStep:
    """One step of N samples: ids (N, T) behind <bos>, the prompt first, padded behind <eos>.

    before and after: (N, vocabulary), the distribution that the last token was drawn from, as the
    model gave it and as it was filtered.
    """

    ids: Tensor
    before: Tensor
    after: Tensor


def filtered_probs(logits: Tensor, sampling: SamplingConfig) -> Tensor:
    """Return the probabilities (..., V) that are drawn from: temperature, then top-k, then top-p.

    logits: (..., V); -inf is a token that is never written.
    """
    if sampling.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.size(-1)).float()
    logits = logits.double()
    # the largest becomes 0 first, so that a temperature near 0 cannot overflow
    ordered, order = ((logits - logits.amax(-1, keepdim=True)) / sampling.temperature).sort(
        dim=-1, descending=True, stable=True
    )
    if sampling.top_k:
        ordered[..., sampling.top_k :] = -math.inf
    chances = ordered.softmax(-1)
    mass_before = chances.cumsum(-1) - chances
    chances = chances.masked_fill(mass_before >= sampling.top_p, 0.0)
    chances = chances / chances.sum(-1, keepdim=True)
    return torch.empty_like(chances).scatter(-1, order, chances).float()


def next_logits(
    model: DecoderOnly | EncoderDecoder, src: Tensor, ids: Tensor, context: int = 0
) -> Tensor:
    """Return (N, V) for the token that follows ids (N, T); a context sees only the last tokens."""
    seen = ids[:, max(0, ids.size(1) - context + 1) :] if context else ids
    tgt_in = torch.cat([seen.new_full((len(seen), 1), BOS), seen], 1)
    out: Tensor = model(src, tgt_in)[:, -1].float()
    return out


@torch.no_grad()
def sampled_steps(
    model: DecoderOnly | EncoderDecoder,
    src: Tensor,
    prompt: Sequence[int] | Tensor = (),
    *,
    max_len: int,
    sampling: SamplingConfig | None = None,
    seeds: Sequence[int] = (0,),
    context: int = 0,
    never: Sequence[int] = (),
) -> Iterator[SampleStep]:
    """Yield a step for each token that is drawn, until every sample ended or is ``max_len`` long.

    src: (1, S) or (1, 0). prompt: ids, or (N, T) to go on from, one row a seed. context: positions
    the model reads at most, <bos> included; 0 is no limit. never: tokens that are not written.
    """
    sampling = sampling or SamplingConfig()
    ids = torch.as_tensor(prompt, dtype=torch.int64, device=src.device)
    ids = ids.expand(len(seeds), -1) if ids.dim() == 1 else ids
    src = src.expand(len(seeds), -1)
    was_training = model.training
    model.eval()
    try:
        while ids.size(1) < max_len and not bool((done := _ended(ids)).all()):
            logits = next_logits(model, src, ids, context)
            logits[:, list(never)] = -math.inf
            before, after = logits.softmax(-1), filtered_probs(logits, sampling)
            position = ids.size(1)
            drawn = torch.stack(
                [_draw(row, seed, position) for row, seed in zip(after, seeds, strict=True)]
            )
            ids = torch.cat([ids, drawn.masked_fill(done, PAD)[:, None]], 1)
            yield SampleStep(ids, before, after)
    finally:
        model.train(was_training)


def _ended(ids: Tensor) -> Tensor:
    return (ids == EOS).any(1)


def _draw(chances: Tensor, seed: int, position: int) -> Tensor:
    """Draw one id from (V,); the same seed and position draw the same from the same chances."""
    generator = torch.Generator().manual_seed((seed * 1_000_003 + position) % 2**63)
    return torch.multinomial(chances.cpu(), 1, generator=generator)[0].to(chances.device)


@dataclass(frozen=True, slots=True, eq=False)
class Beam:
    """A text that is still in the running: its ids behind <bos>, the prompt first.

    score: sum of the natural logarithms of the probabilities of what was written behind the prompt.
    """

    ids: tuple[int, ...]
    score: float
    is_done: bool


@torch.no_grad()
def beam_steps(
    model: DecoderOnly | EncoderDecoder,
    src: Tensor,
    prompt: Sequence[int] = (),
    *,
    max_len: int,
    width: int,
    context: int = 0,
    never: Sequence[int] = (),
) -> Iterator[list[Beam]]:
    """Yield the ``width`` likeliest texts so far, best first, after each token (src: (1, S)).

    A text that ended keeps its score and its rank. Width 1 is greedy. Raises ValueError.
    """
    if width < 1:
        raise StudentError("The beam is {width} wide, but must be at least 1.", width=width)
    beams = [Beam(tuple(prompt), 0.0, EOS in prompt)]
    was_training = model.training
    model.eval()
    try:
        for _ in range(max_len - len(prompt)):
            open_ = [beam for beam in beams if not beam.is_done]
            if not open_:
                return
            ids = torch.tensor([beam.ids for beam in open_], dtype=torch.int64, device=src.device)
            logits = next_logits(model, src.expand(len(open_), -1), ids, context)
            logits[:, list(never)] = -math.inf
            candidates = [beam for beam in beams if beam.is_done]
            for beam, row in zip(open_, logits.double().log_softmax(-1), strict=True):
                best = row.topk(min(width, len(row)))
                candidates += [
                    Beam((*beam.ids, token), beam.score + score, token == EOS)
                    for score, token in zip(
                        best.values.tolist(), best.indices.tolist(), strict=True
                    )
                    if score > -math.inf
                ]
            beams = sorted(candidates, key=lambda beam: -beam.score)[:width]
            yield beams
    finally:
        model.train(was_training)
