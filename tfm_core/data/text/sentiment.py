"""Sentiment: is a small review positive, negative or neutral? By a rule that is known.

    clause   = ["the" thing verb] {"not" | "never"} [intensity] adjective
    sentence = clause {("and" | "but" | "although") clause}

A clause is worth its adjective (+1, 0, -1) times its intensity (slightly 1, nothing 2, very or
really 3), and each "not" or "never" turns the sign. Of a sentence only what stands behind the last
"but" counts, and of that only what stands before the first "although"; the clauses that are left,
joined by "and", are added up. More than zero is positive, less is negative, zero is neutral.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate

from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.data.text.task import (
    Pair,
    SentenceTask,
    Spelling,
    as_sentence,
    check_tokens,
    words_of,
)
from tfm_core.data.vocabulary import Vocabulary

LABELS = ("negative", "neutral", "positive")
THINGS = ("food", "service", "room", "staff", "film", "story", "music", "coffee", "hotel", "view")
VERBS = ("was", "is", "seemed")
NEGATIONS = ("not", "never")
INTENSITIES = {"slightly": 1, "very": 3, "really": 3}
PLAIN = 2  # intensity of an adjective alone
ADJECTIVES = {
    **dict.fromkeys(("good", "nice", "lovely", "clean", "friendly", "great"), 1),
    **dict.fromkeys(("average", "ordinary", "usual"), 0),
    **dict.fromkeys(("bad", "slow", "dirty", "rude", "boring", "awful"), -1),
}
AND, BUT, ALTHOUGH = "and", "but", "although"
JOINS = (AND, BUT, ALTHOUGH)
_THE = "the"
WORDS = {_THE, *THINGS, *VERBS, *NEGATIONS, *INTENSITIES, *ADJECTIVES, *JOINS}
_CONTRACTIONS = {"wasn't": "was not", "isn't": "is not", "wasn’t": "was not", "isn’t": "is not"}
_NEGATED = (), ("not",), ("never",), ("never", "not")
_NEGATED_SHARES = tuple(accumulate((0.5, 0.28, 0.12, 0.1)))  # of all before and itself
_EVERY_ADJECTIVE = tuple(ADJECTIVES)
_STRONG_ADJECTIVES = tuple(word for word, worth in ADJECTIVES.items() if worth)
_EVERY_INTENSITY = tuple(INTENSITIES)


@dataclass(frozen=True, slots=True)
class SentimentClause:
    """Where the parts of a clause stand, and what it is worth; ``end`` is behind its adjective."""

    adjective_at: int
    intensity_at: int | None
    negations_at: tuple[int, ...]
    worth: int
    end: int


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict of the rule on a sentence.

    clauses: all of them; counted: places in it of those that count; worth: their sum; decides: the
    ascending word positions that the label hangs on, the joining words that rule clauses out too.
    """

    clauses: tuple[SentimentClause, ...]
    counted: tuple[int, ...]
    worth: int
    decides: tuple[int, ...]

    @property
    def label(self) -> str:
        """The label of the sentence."""
        return _label(self.worth)


@dataclass(frozen=True)
class SentimentTask(SentenceTask):
    """Sentences of one to ``most`` clauses, the three labels equally often."""

    spelling = Spelling("opinion", "spaced")
    most: int
    name: str = "sentiment"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The words of the reviews."""
        return Vocabulary(tuple(sorted(WORDS)))

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """The labels."""
        return Vocabulary(LABELS)

    def sample(self, rng: random.Random) -> Pair:
        """Draw a label, then sentences until one has it."""
        label = rng.choice(LABELS)
        while True:
            n_joins = rng.randint(1, self.most) - 1
            clauses, joins = [_clause(rng)], []
            for _ in range(n_joins):
                joins.append(rng.choice(JOINS))
                clauses.append(_clause(rng))
            counted = _counted(joins)
            if _label(sum(_worth(clauses[index]) for index in counted)) == label:
                break  # most have another one, and need not be judged word by word
        words = [*clauses[0]]
        for join, clause in zip(joins, clauses[1:], strict=True):
            words += join, *clause
        verdict = judged(words)
        assert verdict is not None
        return Pair(tuple(words), (label,), (verdict.decides,))

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into words, in any case, with or without punctuation. Raises ValueError."""
        text = text.lower()
        for short, long in _CONTRACTIONS.items():
            text = text.replace(short, long)
        longest = TEXT_TASKS[self.name].max_src_len(self.most)
        return check_tokens(words_of(text), self.src_vocabulary, longest=longest)

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the label; None for what is no sentence of the grammar."""
        verdict = judged(src)
        return None if verdict is None else (verdict.label,)

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write as a sentence, with a comma before “but” and “although”."""
        text = " ".join(f", {token}" if token in (BUT, ALTHOUGH) else token for token in tokens)
        return as_sentence(text.replace(" , ", ", ").removeprefix(", "))


def judged(words: Sequence[str]) -> Judged | None:
    """Return the verdict on a sentence; None for what is no sentence of the grammar."""
    clauses: list[SentimentClause] = []
    joins: list[int] = []
    at = 0
    while True:
        clause = _read(words, at)
        if clause is None:
            return None
        clauses.append(clause)
        if clause.end == len(words):
            break
        if words[clause.end] not in JOINS:
            return None
        joins.append(clause.end)
        at = clause.end + 1
    counted = _counted([words[index] for index in joins])
    ruling = [joins[i] for i in (counted[0] - 1, counted[-1]) if 0 <= i < len(joins)]
    decides = sorted({*ruling, *_deciding([clauses[i] for i in counted])})
    worth = sum(clauses[i].worth for i in counted)
    return Judged(tuple(clauses), tuple(counted), worth, tuple(decides))


def _counted(joins: Sequence[str]) -> range:
    """Return which clauses count, by the words between them."""
    first = len(joins) - joins[::-1].index(BUT) if BUT in joins else 0
    last = joins.index(ALTHOUGH, first) if ALTHOUGH in joins[first:] else len(joins)
    return range(first, last + 1)


def _label(worth: int) -> str:
    return LABELS[(worth > 0) - (worth < 0) + 1]


@cache
def _worth(clause: tuple[str, ...]) -> int:
    read = _read(clause, 0)
    assert read is not None
    return read.worth


def _deciding(counted: Sequence[SentimentClause]) -> Iterator[int]:
    """Yield the words of the clauses that the sum hangs on; of one clause no intensity does."""
    for clause in counted:
        yield clause.adjective_at
        yield from clause.negations_at
        if clause.intensity_at is not None and len(counted) > 1:
            yield clause.intensity_at


def _read(words: Sequence[str], at: int) -> SentimentClause | None:
    """Read a clause that starts at an index; None where there is none."""
    start = words[at : at + 3]
    if len(start) == 3 and start[0] == _THE and start[1] in THINGS and start[2] in VERBS:
        at += 3
    negations = []
    while at < len(words) and words[at] in NEGATIONS:
        negations.append(at)
        at += 1
    intensity_at = at if at < len(words) and words[at] in INTENSITIES else None
    at += intensity_at is not None
    if at >= len(words) or words[at] not in ADJECTIVES:
        return None
    strength = PLAIN if intensity_at is None else INTENSITIES[words[intensity_at]]
    worth = ADJECTIVES[words[at]] * strength * (-1) ** len(negations)
    return SentimentClause(at, intensity_at, tuple(negations), worth, at + 1)


def _clause(rng: random.Random) -> tuple[str, ...]:
    """Return the words of a random clause."""
    words = [] if rng.random() < 0.3 else [_THE, rng.choice(THINGS), rng.choice(VERBS)]
    (negations,) = rng.choices(_NEGATED, cum_weights=_NEGATED_SHARES)
    words += negations
    if rng.random() < 0.55:
        words.append(rng.choice(_EVERY_INTENSITY))
    adjectives = _EVERY_ADJECTIVE if rng.random() < 0.4 else _STRONG_ADJECTIVES
    return (*words, rng.choice(adjectives))
