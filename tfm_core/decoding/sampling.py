"""Sampling: each token is drawn from the model's distribution, as it is or sharpened and cut.

A draw depends only on the seed of its sample and the position, so resuming gives the same text as
never having stopped, and a forced token changes no later draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.decoding.kv_cache import ReadPrompt
from tfm_core.decoding.reading import Constraints, Writes, reading
from tfm_core.sentences import StudentError


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
                "temperature is {temperature}; it must be 0 or more.", temperature=self.temperature
            )
        if self.top_k < 0:
            raise StudentError("top_k is {top_k}; it must be 0 (all) or more.", top_k=self.top_k)
        if not 0 < self.top_p <= 1:
            raise StudentError(
                "top_p is {top_p}; it must be above 0 and at most 1.", top_p=self.top_p
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
        return F.one_hot(logits.argmax(-1), logits.size(-1)).float()
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


@torch.no_grad()
def sampled_steps(
    model: Writes,
    src: Tensor,
    prompt: Sequence[int] | Tensor | ReadPrompt = (),
    *,
    max_len: int,
    sampling: SamplingConfig | None = None,
    seeds: Sequence[int] = (0,),
    context: int = 0,
    constraints: Constraints | None = None,
) -> Iterator[SampleStep]:
    """Yield a step for each token that is drawn, until every sample ended or is ``max_len`` long.

    src: (1, S), (1, 0) or one picture (1, C, H, W). prompt: ids, or (N, T) to continue, one row a
    seed, which a model without a source may have read already.
    context: positions the model reads at most, <bos> included; 0 is no limit.
    """
    sampling, constraints = sampling or SamplingConfig(), constraints or Constraints()
    read = prompt if isinstance(prompt, ReadPrompt) else None
    ids = prompt.ids if isinstance(prompt, ReadPrompt) else prompt
    ids = torch.as_tensor(ids, dtype=torch.int64, device=src.device)
    ids = ids.expand(len(seeds), -1) if ids.dim() == 1 else ids
    was_training = model.training
    model.eval()
    try:
        next_logits = reading(model, src, context=context, prompt=read)
        while ids.size(1) < max_len and not bool((done := (ids == model.eos_id).any(1)).all()):
            logits = constraints.mask(next_logits(ids))
            before, after = logits.softmax(-1), filtered_probs(logits, sampling)
            position = ids.size(1)
            if position in constraints.forced:
                drawn = torch.full((len(ids),), constraints.forced[position], device=ids.device)
            else:
                drawn = _sample(after, seeds, position)
            ids = torch.cat([ids, drawn.masked_fill(done, model.fill_id)[:, None]], 1)
            yield SampleStep(ids, before, after)
    finally:
        model.train(was_training)


def _sample(chances: Tensor, seeds: Sequence[int], position: int) -> Tensor:
    """Draw one id from each row of (N, V); the same seed and position draw the same from the same.

    As ``torch.multinomial`` does row by row: the least of exponential waiting times, each divided
    by its chance. Waiting is all that hangs on a seed, so that the rest is done at once.
    """
    waits, generator = torch.empty(chances.shape, dtype=chances.dtype), torch.Generator()
    for row, seed in zip(waits, seeds, strict=True):
        row.exponential_(generator=generator.manual_seed((seed * 1_000_003 + position) % 2**63))
    return (chances.cpu() / waits).argmax(-1).to(chances.device)
