"""Span corruption: what a perfect reader would reach, since no answer follows from what is seen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from tfm_core.data.text.span_corruption import SpanCorruptionTask, posterior
from tfm_core.data.vocabulary import EOS, SPECIALS
from tfm_core.training.losses import input_floor
from tfm_core.training.objectives import TextObjective

Target = tuple[str, ...]


class SpanObjective(TextObjective):
    """Next-token prediction of hidden spans: several answers may be right, so bounds are known."""

    def loss_lower_bound(self) -> float | None:
        """Return the loss of a perfect reader of the grammar on the validation set.

        None where too many words are hidden at once to work that out; of probabilities taken for
        logits, what they alone leave.
        """
        floor = input_floor(self.label_smoothing, self.n_classes, self.loss_input)
        if floor is not None or self._bounds is None:
            return floor
        return self._bounds[0]

    def accuracy_upper_bound(self) -> float | None:
        """Return the share of tokens that a perfect reader gets right there, in the mean."""
        return None if self._bounds is None else self._bounds[1]

    @cached_property
    def _bounds(self) -> tuple[float, float] | None:
        task = self.data.task
        assert isinstance(task, SpanCorruptionTask)
        nats = right = count = 0.0
        for pair in self.data.validation.pairs:
            try:
                chances = posterior(pair.src, task.percent, self.data.n_draws)
            except ValueError:
                return None
            nats -= math.log(chances[pair.tgt])
            right += likeliest_right(chances, pair.tgt)
            count += len(pair.tgt) + 1  # and <eos>
        return nats / count, right / count


def likeliest_right(chances: Mapping[Target, float], target: Target) -> float:
    """Return how many tokens of the target, <eos> too, one may expect of the likeliest each time.

    chances: target -> probability. Each token is guessed with those before it given.
    """
    expected = 0.0
    left = dict(chances)
    for at in range(len(target) + 1):
        nexts: defaultdict[str, float] = defaultdict(float)
        for words, chance in left.items():
            nexts[words[at] if at < len(words) else SPECIALS[EOS]] += chance
        expected += max(nexts.values()) / sum(nexts.values())
        if at < len(target):
            left = {words: c for words, c in left.items() if words[at : at + 1] == (target[at],)}
    return expected
