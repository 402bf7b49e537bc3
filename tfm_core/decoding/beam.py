"""Beam search: the likeliest texts so far, several at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tfm_core.decoding.reading import Constraints, Writes, reading
from tfm_core.sentences import StudentError


@dataclass(frozen=True, slots=True)
class Beam:
    """A text that is still in the running: its ids behind <bos>, the prompt first.

    score: sum of the natural logarithms of the probabilities of what was written behind the prompt;
    ranking: what it is ordered by, the score over the length penalty. parent: the place, from 0,
    that the text without its last token had at the step before; an ended text's is its own.
    """

    ids: tuple[int, ...]
    score: float
    is_done: bool
    ranking: float = 0.0
    parent: int = 0


def length_penalty(n: int, alpha: float) -> float:
    """Return what a score of ``n`` written tokens, <eos> included, is divided by.

    ((5 + n) / 6) ** alpha, Wu et al. 2016, section 7, equation 14: 1 for alpha 0, where a longer
    text can only lose; the larger alpha is, the better longer texts fare.
    """
    return float(((5 + n) / 6) ** alpha)


@torch.no_grad()
def beam_steps(
    model: Writes,
    src: Tensor,
    prompt: Sequence[int] = (),
    *,
    max_len: int,
    width: int,
    alpha: float = 0.0,
    context: int = 0,
    constraints: Constraints | None = None,
) -> Iterator[list[Beam]]:
    """Yield the ``width`` best texts so far, best first, after each token (src: of one text).

    A text that ended keeps its score and stands in the beam as long as none is better. Width 1 is
    greedy. alpha: of the length penalty. context: as in ``sampled_steps``.
    Raises ValueError.
    """
    if width < 1:
        raise StudentError("The beam width is {width}; it must be at least 1.", width=width)
    if not (math.isfinite(alpha) and alpha >= 0):
        raise StudentError("alpha is {alpha}; it must be 0 or more.", alpha=alpha)
    beams = [Beam(tuple(prompt), 0.0, model.eos_id in prompt)]
    constraints = constraints or Constraints()
    was_training = model.training
    model.eval()
    try:
        next_logits, rows = reading(model, src, context=context), [0]
        for position in range(len(prompt), max_len):
            places = [place for place, beam in enumerate(beams) if not beam.is_done]
            if not places:
                return
            ids = torch.tensor(
                [beams[place].ids for place in places], dtype=torch.int64, device=src.device
            )
            parents = torch.tensor([rows.index(beams[place].parent) for place in places])
            logits = next_logits(ids, parents.to(src.device) if position > len(prompt) else None)
            logs = constraints.mask(logits).double().log_softmax(-1)
            if position in constraints.forced:
                others = torch.arange(logs.size(1), device=logs.device)
                others = others != constraints.forced[position]
                logs = logs.masked_fill(others, -math.inf)
            divisor = length_penalty(position + 1 - len(prompt), alpha)
            extended = _grown(beams, places, logs, width, divisor, eos_id=model.eos_id)
            done = [
                Beam(beam.ids, beam.score, True, beam.ranking, place)
                for place, beam in enumerate(beams)
                if beam.is_done
            ]
            beams = sorted([*done, *extended], key=lambda beam: -beam.ranking)[:width]
            rows = places
            yield beams
    finally:
        model.train(was_training)


def _grown(
    beams: Sequence[Beam],
    places: Sequence[int],
    logs: Tensor,
    width: int,
    divisor: float,
    *,
    eos_id: int,
) -> list[Beam]:
    """Return the ``width`` best texts with one token more. logs: (N, V), of the open ones."""
    before = torch.tensor([beams[place].score for place in places], dtype=logs.dtype)
    scores = (before.to(logs.device)[:, None] + logs).flatten()
    best = scores.topk(min(width, len(scores)))
    texts = []
    for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        if score == -math.inf:
            continue
        row, token = divmod(index, logs.size(1))
        ids = (*beams[places[row]].ids, token)
        texts.append(Beam(ids, score, token == eos_id, score / divisor, places[row]))
    return texts
