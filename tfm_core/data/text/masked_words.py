"""Masked words: the toy English with some words hidden, to be guessed from both sides.

BERT's task (Devlin et al. 2019, "BERT", section 3.1). The target is the whole sentence; a hidden
word is not a function of what can be seen, so the best that a model can do is to say how likely
each word is, and here that is known exactly (``english_sentences.completions``).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.data.text import english_sentences
from tfm_core.data.text.english_sentences import completions
from tfm_core.data.text.task import (
    Pair,
    SentenceTask,
    Spelling,
    as_sentence,
    check_tokens,
    words_of,
)
from tfm_core.data.vocabulary import MASK, Vocabulary
from tfm_core.sentences import StudentError

BLANK = "___"
"""How a hidden word is written and read by people."""

MAX_GAPS = 5  # words hidden at once whose chances are still worked out; more take seconds


@dataclass(frozen=True)
class MaskedWordsTask(SentenceTask):
    """Sentences of one clause with ``percent`` of their words hidden, at least one."""

    spelling = Spelling("gaps", "sentence")
    percent: int
    name: str = "masked-words"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The English words, and the mask."""
        return Vocabulary((*sorted(english_sentences.WORDS), MASK))

    def sample(self, rng: random.Random) -> Pair:
        """Draw a sentence and what is hidden of it."""
        words = english_sentences.one_clause(rng)
        hidden = set(rng.sample(range(len(words)), n_hidden(len(words), self.percent)))
        src = tuple(MASK if position in hidden else word for position, word in enumerate(words))
        return Pair(src, tuple(words), ((),) * len(words))

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into words, in any case; two or more ``_`` are a gap. Raises ValueError."""
        words = [MASK if re.fullmatch(r"_{2,}", word) else word for word in words_of(text)]
        longest = TEXT_TASKS[self.name].max_src_len(self.percent)
        return check_tokens(words, self.src_vocabulary, longest=longest)

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the sentence where only one fits; None where several do, or none."""
        if not src or src.count(MASK) > MAX_GAPS:
            return None
        fitting = list(completions(as_pattern(src)))
        return fitting[0] if len(fitting) == 1 else None

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write as a sentence with gaps."""
        return as_sentence(" ".join(BLANK if token == MASK else token for token in tokens))

    def join_tgt(self, tokens: Sequence[str]) -> str:
        """Write as a sentence."""
        return self.join_src(tokens)


def n_hidden(length: int, percent: int) -> int:
    """Return how many words of a sentence are hidden: the share, rounded, and at least one."""
    return max(1, round(length * percent / 100))


def as_pattern(src: Sequence[str]) -> tuple[str | None, ...]:
    """Return a source with None for each hidden word."""
    return tuple(None if token == MASK else token for token in src)


def chance_in_data(chance: float, n_draws: int) -> float:
    """Return the chance that a sentence is among ``n_draws`` draws of which each is kept once.

    Frequent sentences are thinned out by that: what is learned from, and measured on, is this.
    """
    return -math.expm1(n_draws * math.log1p(-chance))


def check_gaps(n: int) -> None:
    """Raise StudentError for more hidden words than have their chances worked out."""
    if n > MAX_GAPS:
        raise StudentError(
            "Hide at most {most_gaps} words to see exact chances; {n_places} are hidden.",
            n_places=n,
            most_gaps=MAX_GAPS,
        )


def posterior(src: Sequence[str], n_draws: int) -> dict[int, dict[str, float]]:
    """Return a perfect reader's answer: hidden position -> word -> probability, likeliest first.

    n_draws: of the data that is learned from, see ``chance_in_data``. Which of the sentences went
    into which split is not used. Empty where no sentence of the grammar fits. Raises ValueError,
    in a sentence, for more than MAX_GAPS hidden words.
    """
    positions = [position for position, token in enumerate(src) if token == MASK]
    check_gaps(len(positions))
    shares: dict[int, dict[str, float]] = {position: {} for position in positions}
    total = 0.0
    for words, chance in completions(as_pattern(src)).items():
        weight = chance_in_data(chance, n_draws)
        total += weight
        for position in positions:
            shares[position][words[position]] = shares[position].get(words[position], 0.0) + weight
    if not total:
        return {}
    return {
        position: {
            word: weight / total
            for word, weight in sorted(weights_of.items(), key=lambda pair: -pair[1])
        }
        for position, weights_of in shares.items()
    }


def entropy(shares: Sequence[float]) -> float:
    """Return the entropy of probabilities in nats."""
    return -sum(share * math.log(share) for share in shares if share > 0)
