"""Span corruption: what a perfect reader would reach, since no answer follows from what is seen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from tfm_core.data.text.span_corruption import SpanCorruptionTask, posterior
from tfm_core.data.vocabulary import EOS, SPECIALS
from tfm_core.training.perfect_reader import ReadObjective

Target = tuple[str, ...]


class SpanObjective(ReadObjective):
    """Next-token prediction of hidden spans: several answers may be right, so bounds are known."""

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
