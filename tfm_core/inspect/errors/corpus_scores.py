"""BLEU and chrF of what a model wrote, over a whole corpus, as sacrebleu computes them.

Papineni et al. 2002: how many of the n-grams that were written stand in the truth, and whether
enough was written. Popovic 2015: the same for the n-grams of letters. Post 2018: a score without
its signature can't be compared, so each has its own here. sacrebleu is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CorpusScore:
    """A score from 0 to 100, and the signature that says how sacrebleu reached it."""

    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class CorpusScores:
    """Both scores of the same texts."""

    bleu: CorpusScore
    chrf: CorpusScore


def corpus_scores(said: Sequence[str], truth: Sequence[str]) -> CorpusScores:
    """Score texts whose tokens are parted by spaces against one truth each.

    Tokens are taken as they are (sacrebleu's ``--tokenize none``), for they are the task's own
    words. As many texts as truths, at least one.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = BLEU(tokenize="none", force=True), CHRF()
    of_words = bleu.corpus_score(list(said), [list(truth)])
    of_letters = chrf.corpus_score(list(said), [list(truth)])
    return CorpusScores(
        CorpusScore(float(of_words.score), str(bleu.get_signature())),
        CorpusScore(float(of_letters.score), str(chrf.get_signature())),
    )
