"""Beam search as a tree, beside other ways to decode; torch is imported late.

A beam drops unlikely beginnings; a wider beam, greedy decoding or a sample may find a likelier
text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfm_core.inspect.tables import table
from tfm_core.inspect.writing.source import Source
from tfm_core.inspect.writing.steps import Forced

if TYPE_CHECKING:
    import pandas as pd

    from tfm_core.decoding import Beam

WIDEST = 64
N_SAMPLES = 8
MAX_TOKENS = 60_000
"""Tokens that the wider search may read, to limit its time."""

FoundBy = Literal["wider", "greedy", "sample"]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text of a beam: its tokens, the prompt first, and its log-probability.

    n_written: tokens after the prompt. ranking: score over length penalty. parent: its place
    before.
    """

    tokens: tuple[str, ...]
    score: float
    is_done: bool
    n_written: int
    ranking: float
    parent: int = 0


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """The beam width, the most tokens to write, and the length penalty."""

    width: int
    n: int
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class BeamComparison:
    """The beams after each token, best first, and what other ways found.

    wider: the width that found ``wide``. samples: likeliest first.
    """

    settings: BeamSettings
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
        """What the other ways found, the best first; of equals the wider beam's."""
        found: list[tuple[FoundBy, Hypothesis]] = [("wider", self.wide), ("greedy", self.greedy)]
        found += [("sample", sample) for sample in self.samples]
        return sorted(found, key=lambda one: -round(one[1].ranking, 6))  # stable

    @property
    def is_missed(self) -> bool:
        """Whether another way found a text that the beam would have ranked before its best."""
        _found_by, text = self.others[0]
        return text.tokens != self.best.tokens and text.ranking > self.best.ranking + 1e-6

    @property
    def times_missed(self) -> float:
        """How many times as likely the best other text is; 1 where nothing was missed."""
        if not self.is_missed:
            return 1.0
        return math.exp(self.others[0][1].score - self.best.score)

    @property
    def fell_out_at(self) -> int | None:
        """The step, from 0, at which the missed text left the beam; None where it never did."""
        if not self.is_missed:
            return None
        tokens = self.others[0][1].tokens
        for step, beams in enumerate(self.steps):
            if not any(tokens[: len(beam.tokens)] == beam.tokens for beam in beams):
                return step
        return None

    @property
    def tree(self) -> pd.DataFrame:
        """Return a row for every text of the beam: a node of the tree, at its step and place.

        text: its tokens; parent: its place at the step before; is_new: its last token was written
        at this step; lives: it leads to a text of the final beam.
        """
        lives: list[set[int]] = [set() for _ in self.steps]
        lives[-1] = set(range(len(self.steps[-1])))
        for step in range(len(self.steps) - 1, 0, -1):
            lives[step - 1] = {self.steps[step][place].parent for place in lives[step]}
        rows = [
            (
                *(step, place, beam.parent, beam.tokens, beam.score, beam.is_done),
                not step or not self.steps[step - 1][beam.parent].is_done,
                place in lives[step],
            )
            for step, beams in enumerate(self.steps)
            for place, beam in enumerate(beams)
        ]
        columns = {"step": int, "place": int, "parent": int, "text": object, "score": float}
        return table(rows, **columns, is_done=bool, is_new=bool, lives=bool)


def wider_than(width: int, n: int) -> int:
    """Return the width to compare with, for ``n`` tokens: up to WIDEST, twice as wide at least."""
    affordable = MAX_TOKENS // (n * (n + 1) // 2)
    return max(2 * width, min(WIDEST, affordable))


def compare(
    source: Source, settings: BeamSettings, forced: Forced | None = None
) -> BeamComparison | None:
    """Search with a beam, and in other ways, for at most ``settings.n`` tokens.

    forced: see ``steps.write``. None if the prompt has ended. Raises StudentError for a model that
    writes all at once.
    """
    n = min(settings.n, source.longest)
    settings = BeamSettings(settings.width, n, settings.alpha)
    steps = search(source, settings, forced)
    if not steps:
        return None
    wider = wider_than(settings.width, n)
    greedy = search(source, BeamSettings(1, n, settings.alpha), forced)[-1][0]
    wide = search(source, BeamSettings(wider, n, settings.alpha), forced)[-1][0]
    samples = _samples(source, settings, forced)
    return BeamComparison(settings, wider, steps, greedy, wide, samples)


def search(
    source: Source, settings: BeamSettings, forced: Forced | None = None
) -> list[list[Hypothesis]]:
    """Return the beams after each token, best first; width 1 is greedy writing."""
    from tfm_core.decoding import Constraints, beam_steps

    before = len(source.prompt)
    steps = beam_steps(
        source.writer,
        source.src,
        source.prompt,
        max_len=before + settings.n,
        width=settings.width,
        alpha=settings.alpha,
        context=source.context,
        constraints=Constraints(source.never, _placed(source, forced)),
    )
    return [_hypotheses(source, beams) for beams in steps]


def _hypotheses(source: Source, beams: Iterable[Beam]) -> list[Hypothesis]:
    before = len(source.prompt)
    return [
        Hypothesis(
            source.tokens_of(beam.ids),
            beam.score,
            beam.is_done,
            len(beam.ids) - before,
            beam.ranking,
            beam.parent,
        )
        for beam in beams
    ]


def _samples(
    source: Source, settings: BeamSettings, forced: Forced | None
) -> tuple[Hypothesis, ...]:
    """Sample texts, and score them like a beam's."""
    from tfm_core.decoding import Constraints, length_penalty, sampled_steps

    before, ids = len(source.prompt), [list[int]() for _ in range(N_SAMPLES)]
    eos = source.vocabulary.specials.eos
    scores = [0.0] * N_SAMPLES
    for step in sampled_steps(
        source.writer,
        source.src,
        source.prompt,
        max_len=before + settings.n,
        seeds=range(N_SAMPLES),
        context=source.context,
        constraints=Constraints(source.never, _placed(source, forced)),
    ):
        for row, (text, chances) in enumerate(zip(step.ids.tolist(), step.before, strict=True)):
            if eos not in ids[row]:
                ids[row].append(text[-1])
                scores[row] += math.log(max(float(chances[text[-1]]), 1e-300))
    texts = [
        Hypothesis(
            source.tokens_of((*source.prompt, *text)),
            score,
            eos in text,
            len(text),
            score / length_penalty(len(text), settings.alpha),
        )
        for text, score in zip(ids, scores, strict=True)
    ]
    return tuple(sorted(texts, key=lambda text: -text.ranking))


def _placed(source: Source, forced: Forced | None) -> dict[int, int]:
    return {len(source.prompt) + place: id for place, id in (forced or {}).items()}
