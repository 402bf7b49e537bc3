"""An alignment score without its bend: what the decoder asks cancels in the softmax."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_, Paragraph

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
    label=N_("Score that is linear in both states"),
    short=N_("linear score"),
    help=Paragraph("mistakes/linear-score-help"),
    source="Bahdanau et al. 2015, appendix A.1.2, without the tanh",
    place=None,
    right="score = v(torch.tanh(W(s) + U(h)))",
    wrong="score = Linear(torch.cat([s, h], -1))  # the part of s is equal for all h",
    apply=_straighten,
    means=Paragraph("mistakes/linear-score-effect"),
    probe=None,
)
