"""BLEU and chrF of what a model wrote, over a whole corpus, as sacrebleu computes them.

Papineni et al. 2002: how many of the n-grams that were written stand in the truth, and whether
enough was written. Popovic 2015: the same for the n-grams of letters. Post 2018: a score without
its signature can't be compared, so each has its own here. sacrebleu is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

N_GRAM = 4
"""Words of the longest n-grams that BLEU counts."""


@dataclass(frozen=True, slots=True)
class CorpusScore:
    """A score from 0 to 100, and the signature that says how sacrebleu reached it."""

    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class CorpusScores:
    """Both scores of the same texts.

    bleu: None where the tokens are no words, or where most truths are too short for it. n_short:
    truths of fewer than N_GRAM words.
    """

    bleu: CorpusScore | None
    chrf: CorpusScore
    n_short: int


def corpus_scores(
    said: Sequence[str], truth: Sequence[str], *, are_words: bool = True
) -> CorpusScores:
    """Score texts against one truth each; as many texts as truths, at least one.

    are_words: words stand between spaces and are taken as they are (sacrebleu's ``--tokenize
    none``), for they are the task's own. BLEU is a mean over n-grams of up to four words: of texts
    that are shorter it is 0 however right they are.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    n_short = sum(len(text.split()) < N_GRAM for text in truth)
    references = [list(truth)]
    bleu, chrf = BLEU(tokenize="none", force=True), CHRF()
    of_words = None
    if are_words and 2 * n_short <= len(truth):
        value = float(bleu.corpus_score(list(said), references).score)
        of_words = CorpusScore(value, str(bleu.get_signature()))
    value = float(chrf.corpus_score(list(said), references).score)
    return CorpusScores(of_words, CorpusScore(value, str(chrf.get_signature())), n_short)
