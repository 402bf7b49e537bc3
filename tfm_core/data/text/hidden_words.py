"""The toy English with words hidden: one by one, as BERT learns, or in spans, as T5 does.

Masked words (Devlin et al. 2019, section 3.1): the target is the whole sentence. Span corruption
(Raffel et al. 2020, section 3.1.4): each hidden span becomes one sentinel; the target lists every
sentinel with its words, and ends with one more. T5 hides 15% of texts of 512 tokens in
spans of 3 on average. These sentences have 3 to 16 words, of which that would be one or two, so by
default 30% are hidden, in spans of 2 on average.

A hidden word is not a function of what can be seen: the best that a model can do is to say how
likely each answer is, and here that is known exactly (``english_sentences.completions``).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

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


def word_posterior(src: Sequence[str], n_draws: int) -> dict[int, dict[str, float]]:
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


MEAN_SPAN = 2
LONGEST = 16
"""Words of the longest sentence."""
SENTINELS = tuple(f"<extra_id_{i}>" for i in range(5))
"""T5's own names. The last that a target needs stands at its end and in no source."""


@dataclass(frozen=True)
class SpanCorruptionTask(SentenceTask):
    """Sentences of one clause with ``percent`` of their words hidden in spans, at least one."""

    spelling = Spelling("spans", "spaced")
    percent: int
    name: str = "span-corruption"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The English words, and the sentinels."""
        return Vocabulary((*sorted(english_sentences.WORDS), *SENTINELS))

    def sample(self, rng: random.Random) -> Pair:
        """Draw a sentence and the spans that are hidden of it; all ways are equally likely."""
        words = english_sentences.one_clause(rng)
        hidden = n_hidden(len(words), self.percent)
        spans = n_spans(hidden)
        lengths = _parts(hidden, sorted(rng.sample(range(1, hidden), spans - 1)))
        # one visible word at least between two spans, and any number at both ends
        places = sorted(rng.sample(range(len(words) - hidden + 1), spans))
        src: list[str] = []
        tgt: list[str] = []
        at = hidden = 0
        for sentinel, place, length in zip(SENTINELS, places, lengths, strict=False):
            start = place + hidden
            src += [*words[at:start], sentinel]
            at, hidden = start + length, hidden + length
            tgt += [sentinel, *words[start:at]]
        src += words[at:]
        tgt.append(SENTINELS[spans])
        # a sentinel comes from that of the source; no visible word decides a hidden one
        where = {token: (at,) for at, token in enumerate(src) if token in SENTINELS}
        return Pair(tuple(src), tuple(tgt), tuple(where.get(token, ()) for token in tgt))

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into words, in any case; a sentinel or two and more ``_`` are a hidden span.

        Raises ValueError.
        """
        tokens = []
        n = 0
        for word in words_of(text):
            if re.fullmatch(r"_{2,}|<extra_id_\d+>", word):
                if n == len(SENTINELS) - 1:
                    raise StudentError(
                        "This task allows at most {most} hidden spans.", most=len(SENTINELS) - 1
                    )
                word, n = SENTINELS[n], n + 1
            tokens.append(word)
        longest = TEXT_TASKS[self.name].max_src_len(self.percent)
        return check_tokens(tokens, self.src_vocabulary, longest=longest)

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the target where only one fits; None where several do, or none."""
        try:
            fitting = span_posterior(src, self.percent, 1)
        except ValueError:
            return None
        return next(iter(fitting)) if len(fitting) == 1 else None


def n_spans(hidden: int) -> int:
    """Return the number of spans for a number of hidden words."""
    return max(1, round(hidden / MEAN_SPAN))


def whole_sentence(pair: Pair) -> tuple[str, ...]:
    """Return the sentence behind a pair: every sentinel of the source by its words."""
    spans: dict[str, list[str]] = {}
    for token in pair.tgt:
        if token in SENTINELS:
            spans[token] = []
        else:
            spans[next(reversed(spans))].append(token)
    return tuple(word for token in pair.src for word in spans.get(token, [token]))


def span_posterior(src: Sequence[str], percent: int, n_draws: int) -> dict[tuple[str, ...], float]:
    """Return a perfect reader's answer: each target that may be right, and its probability.

    n_draws: of the data that is learned from, see ``chance_in_data``. Empty where no
    sentence of the grammar fits. Raises ValueError for more than MAX_GAPS words.
    """
    at = [position for position, token in enumerate(src) if token in SENTINELS]
    visible, weights = len(src) - len(at), dict[tuple[str, ...], float]()
    if not at:
        return {}
    for length in range(visible + 1, LONGEST + 1):
        hidden = n_hidden(length, percent)
        if visible + hidden != length or n_spans(hidden) != len(at):
            continue
        check_gaps(hidden)
        n_ways = math.comb(hidden - 1, len(at) - 1) * math.comb(visible + 1, len(at))
        for target, chance in _fitting(src, hidden, len(at)):
            weights[target] = weights.get(target, 0.0) + chance_in_data(chance, n_draws) / n_ways
    total = sum(weights.values())
    ordered = sorted(weights.items(), key=lambda pair: -pair[1])
    return {target: weight / total for target, weight in ordered}


def _fitting(
    src: Sequence[str], hidden: int, spans: int
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the targets of all sentences that hide ``hidden`` words, with the sentence's chance."""
    for cuts in combinations(range(1, hidden), spans - 1):
        lengths = iter(_parts(hidden, cuts))
        pattern: list[str | None] = []
        places = []
        for token in src:
            if token in SENTINELS:
                length = next(lengths)
                places.append((len(pattern), length))
                pattern += [None] * length
            else:
                pattern.append(token)
        for words, chance in completions(pattern).items():
            target: list[str] = []
            for sentinel, (start, length) in zip(SENTINELS, places, strict=False):
                target += [sentinel, *words[start : start + length]]
            yield (*target, SENTINELS[spans]), chance


def _parts(total: int, cuts: Sequence[int]) -> list[int]:
    """Return the lengths of the parts that ascending cuts make of a whole."""
    ends = [0, *cuts, total]
    return [end - start for start, end in pairwise(ends)]
