"""Glosses: the source word that a target token translates, learned from the task's own alignment.

A token gets the source word that it comes from in most pairs: 달걀 comes from “egg” each time, the
particle 이 from the noun before it and from “a”, whichever the noun. An ending that follows every
verb comes from another word each time, so it has no gloss.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tfm_core.choices.config import Experiment, TextTaskConfig
from tfm_core.data.text import generated
from tfm_core.data.text.task import TextTask

PAIRS = 2000
"""Pairs that are drawn; each word of a grammar is in dozens of them."""
MIN_SHARE = 0.4
"""Share of a token's pairs that its gloss is from: of “sleep” and “sleeps” either may have half."""


@lru_cache(maxsize=16)
def glosses(task: TextTask) -> Mapping[str, str]:
    """Return the source word of each target token that has one."""
    rng = random.Random(0)
    sources: dict[str, Counter[str]] = defaultdict(Counter)
    n_times: Counter[str] = Counter()
    for pair in (task.sample(rng) for _ in range(PAIRS)):
        for token, positions in zip(pair.tgt, pair.alignment, strict=True):
            n_times[token] += 1
            sources[token].update({pair.src[position] for position in positions})
    best = {token: words.most_common(1)[0] for token, words in sources.items() if words}
    return {
        token: word
        for token, (word, count) in best.items()
        if word != token and count >= MIN_SHARE * n_times[token]
    }


@dataclass(frozen=True, slots=True)
class Glosses:
    """The source word of each target token that has one. language: of the target, as in ``ko``."""

    language: str
    words: Mapping[str, str] = field(default_factory=dict)


def glosses_of(experiment: Experiment) -> Glosses | None:
    """Return the glosses of a translation whose true alignment is known; None of other tasks."""
    task = experiment.task
    if not isinstance(task, TextTaskConfig) or task.facts.tgt_language is None:
        return None
    return Glosses(task.facts.tgt_language, glosses(generated(task)))


def language_of(experiment: Experiment) -> str | None:
    """Return the language of the words that a text task of ours reads, as in ``en``."""
    task = experiment.task
    return task.facts.language if isinstance(task, TextTaskConfig) else None
