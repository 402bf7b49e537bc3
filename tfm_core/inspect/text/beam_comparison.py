"""A beam beside other ways to write: is its best text the likeliest that anybody finds?

A beam drops beginnings that are unlikely so far, whatever might follow; a wider beam, greedy
writing or a sample may find a likelier text. torch is imported where it is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tfm_core.inspect.text import gpt_writing
from tfm_core.inspect.text.gpt_writing import Hypothesis, Ids, Sample
from tfm_core.runs.run import Run

WIDEST = 64
N_SAMPLES = 8
MOST_TOKENS = 60_000
"""Tokens that the wider search may read: what keeps long texts from taking long."""

FoundBy = Literal["wider", "greedy", "sample"]


@dataclass(frozen=True, slots=True)
class BeamComparison:
    """The beams of a search after each token, best first, and what was found in other ways.

    wider: the width of the search that found ``wide``. samples: drawn as the model says, the
    likeliest first.
    """

    width: int
    wider: int
    steps: list[list[Hypothesis]]
    greedy: Hypothesis
    wide: Hypothesis
    samples: tuple[Hypothesis, ...]

    @property
    def best(self) -> Hypothesis:
        """The best text of the beam."""
        return self.steps[-1][0]

    @property
    def others(self) -> list[tuple[FoundBy, Hypothesis]]:
        """What the other ways found, the likeliest first; of equals the wider beam's."""
        found: list[tuple[FoundBy, Hypothesis]] = [("wider", self.wide), ("greedy", self.greedy)]
        found += [("sample", sample) for sample in self.samples]
        return sorted(found, key=lambda one: -round(one[1].score, 6))  # stable

    @property
    def times_missed(self) -> float:
        """How many times as likely the likeliest other text is; 1 where none is likelier."""
        _found_by, text = self.others[0]
        if text.tokens == self.best.tokens:
            return 1.0
        return math.exp(max(0.0, text.score - self.best.score))


def wider_than(width: int, n: int) -> int:
    """Return the width to compare with, for ``n`` tokens: up to WIDEST, twice as wide at least."""
    affordable = MOST_TOKENS // (n * (n + 1) // 2)
    return max(2 * width, min(WIDEST, affordable))


def compare(run: Run, prompt: Ids, *, width: int, n: int) -> BeamComparison | None:
    """Search with a beam, and in other ways, for ``n`` tokens behind a prompt.

    None where the prompt has ended already. Raises ValueError, in a sentence, without weights.
    """
    steps = gpt_writing.search(run, prompt, width=width, n=n)
    if not steps:
        return None
    wider = wider_than(width, n)
    greedy = gpt_writing.search(run, prompt, width=1, n=n)[-1][0]
    wide = gpt_writing.search(run, prompt, width=wider, n=n)[-1][0]
    return BeamComparison(width, wider, steps, greedy, wide, _samples(run, prompt, n))


def _samples(run: Run, prompt: Ids, n: int) -> tuple[Hypothesis, ...]:
    """Draw texts as the model says, and score them as a beam's."""
    from tfm_core.decoding import SamplingConfig

    begun = [Sample(prompt, ()) for _seed in range(N_SAMPLES)]
    *_, drawn = gpt_writing.write_on(run, begun, SamplingConfig(), range(N_SAMPLES), n=n)
    texts = [
        Hypothesis(
            gpt_writing.tokens_of(run, sample.ids),
            sum(map(math.log, sample.chances)),
            gpt_writing.has_ended(sample),
        )
        for sample in drawn
    ]
    return tuple(sorted(texts, key=lambda text: -text.score))
