"""An alignment score without its bend: what the decoder asks cancels in the softmax."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import nn


def _straighten(model: nn.Module) -> None:
    from tfm_core.layers.recurrent import AdditiveScore
    from tfm_core.mistakes.parts import linear_score

    scores = [part for part in model.modules() if isinstance(part, AdditiveScore)]
    if not scores:
        raise ValueError(f"A {type(model).__name__} has no additive score.")
    for score in scores:
        score.forward = partial(linear_score, score)  # type: ignore[method-assign]


LINEAR_SCORE = Mistake(
    name="linear-score",
    label=N_("A score that is linear in both states"),
    short=N_("linear score"),
    help=N_(
        "Linear([s; h]) is the sum of a number of the decoder state and one of the source state. "
        "The first is the same for all source words, and the softmax cancels it: every target word "
        "gets the same weights."
    ),
    source="Bahdanau et al. 2015, appendix A.1.2, without the tanh",
    place=None,
    right="score = v(torch.tanh(W(s) + U(h)))",
    wrong="score = Linear(torch.cat([s, h], -1))  # the part of s is equal for all h",
    apply=_straighten,
    means=N_(
        "Without the tanh the decoder state adds the same number to all scores of a row, which the "
        "softmax cancels: all target words looked at the source with the same weights."
    ),
    probe=None,
)
