"""English to Korean: a toy grammar into real, correct Korean.

The verb moves to the end and the time to the front; a particle after each noun says its part in the
sentence and agrees with the noun's last sound; the article decides between topic and subject: “the
dog” is 개는 (은/는), “a dog” is 개가 (이/가). No article is translated by a word of its own.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

from tfm_core.choices.config import Experiment, TextTaskConfig
from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.data.text import english_sentences, generated, korean_words
from tfm_core.data.text.english_sentences import EnglishClause, Phrase, parses
from tfm_core.data.text.korean_words import AGREEING, OBJECT, SUBJECT, TOPIC, WITH, particle
from tfm_core.data.text.task import Pair, SentenceTask, Spelling, TextTask, check_tokens, words_of
from tfm_core.data.vocabulary import Vocabulary

SUFFIXES = frozenset(
    [form for forms in AGREEING for form in forms]
    + list(korean_words.PREPOSITIONS.values())
    + [korean_words.FULL_STOP_ENDING, korean_words.LINKING_ENDING]
)


@cache
def word_classes() -> dict[str, str]:
    """Return the class of each word, English and Korean: a group of nouns, or a part of speech."""
    words = korean_words
    classes: dict[str, Iterable[str]] = {
        "verb, present": [
            form
            for verb in words.VERBS
            for form in (verb.singular, verb.plural, verb.korean_final, verb.korean_linking)
        ],
        "verb, past": [form for verb in words.VERBS for form in (verb.past, verb.korean_past)],
        "adjective": [*words.ADJECTIVES, *words.ADJECTIVES.values()],
        "place": [*words.ALL_PLACES, *words.ALL_PLACES.values()],
        "time": [*words.TIMES, *(korean for korean, _ in words.TIMES.values())],
        "preposition": words.PREPOSITIONS,
        "article": words.ARTICLES,
        "and": [words.AND],
        "ending": SUFFIXES,
    }
    for group, nouns in words.NOUNS.items():
        classes[group] = [form for noun in nouns for form in (noun.english, noun.korean)]
    return {form: name for name, forms in classes.items() for form in forms}


@dataclass(frozen=True)
class EnglishKoreanTask(SentenceTask):
    """Sentences of one clause, or of two clauses joined by “and”."""

    spelling = Spelling(
        "words",
        "suffixed",
        suffixes=tuple(sorted(SUFFIXES)),
        ending=korean_words.FULL_STOP_ENDING,
    )
    n_clauses: int
    name: str = "english-korean"

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """The English words."""
        return Vocabulary(tuple(sorted(english_sentences.WORDS)))

    @cached_property
    def tgt_vocabulary(self) -> Vocabulary:
        """Korean words and, as tokens of their own, particles and endings."""
        verbs = {
            form
            for verb in korean_words.VERBS
            for form in (verb.korean_final, verb.korean_past)
            + ((verb.korean_linking,) if self.n_clauses > 1 else ())
        }
        words = {
            *verbs,
            *korean_words.ADJECTIVES.values(),
            *korean_words.ALL_NOUNS.values(),
            *korean_words.ALL_PLACES.values(),
            *(korean for korean, _ in korean_words.TIMES.values()),
        }
        suffixes = SUFFIXES - ({korean_words.LINKING_ENDING} if self.n_clauses == 1 else set())
        return Vocabulary((*sorted(words), *sorted(suffixes)))

    def sample(self, rng: random.Random) -> Pair:
        """Draw one or two clauses."""
        words: list[str] = []
        clauses = []
        is_past = rng.random() < 0.5  # in both clauses: 먹고 ... 샀다 would read as past twice
        for i in range(self.n_clauses):
            if i:
                words.append(korean_words.AND)
            # With two clauses, which nouns an "and" joins must be plain to see.
            joins = ("subject", "object") if self.n_clauses == 1 else (("subject", "object")[i],)
            clauses.append(english_sentences.clause(rng, words, is_past=is_past, may_join=joins))
        return _pair(words, clauses)

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut into words, in any case, with or without a final period. Raises ValueError."""
        words = words_of(text)
        longest = TEXT_TASKS[self.name].max_src_len(self.n_clauses)
        return check_tokens(words, self.src_vocabulary, longest=longest)

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the translation; None for what the grammar does not know or can read two ways."""
        readings = {_pair(list(src), clauses).tgt for clauses in parses(list(src), self.n_clauses)}
        return readings.pop() if len(readings) == 1 else None

    def join_tgt(self, tokens: Sequence[str]) -> str:
        """Write as Korean: particles and endings join the word before them."""
        text = "".join(
            token if i == 0 or token in SUFFIXES else f" {token}" for i, token in enumerate(tokens)
        )
        return f"{text}." if tokens and tokens[-1] == korean_words.FULL_STOP_ENDING else text


class _Writer:
    """Korean tokens as they are written, and the English words each comes from."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.tokens: list[str] = []
        self.sources: list[tuple[int, ...]] = []

    def write(self, token: str, *positions: int) -> None:
        self.tokens.append(token)
        self.sources.append(tuple(sorted(positions)))

    def adjective(self, position: int | None) -> None:
        if position is not None:
            self.write(korean_words.ADJECTIVES[self.words[position]], position)

    def phrase(self, phrase: Phrase, forms: tuple[str, str], *, article: bool = False) -> None:
        for i, (article_at, adjective_at, noun_at) in enumerate(phrase.nouns):
            self.adjective(adjective_at)
            noun = korean_words.ALL_NOUNS[self.words[noun_at]]
            self.write(noun, noun_at)
            if i + 1 < len(phrase.nouns):
                self.write(particle(WITH, noun), noun_at, phrase.and_at)
            else:
                self.write(particle(forms, noun), noun_at, *((article_at,) if article else ()))

    def clause(self, clause: EnglishClause, *, is_last: bool) -> None:
        words = self.words
        if clause.time_at is not None:
            self.write(korean_words.TIMES[words[clause.time_at]][0], clause.time_at)
        has_topic = words[clause.subject.nouns[-1][0]] == "the"
        self.phrase(clause.subject, TOPIC if has_topic else SUBJECT, article=True)
        if clause.place is not None:
            preposition_at, adjective_at, noun_at = clause.place
            self.adjective(adjective_at)
            self.write(korean_words.ALL_PLACES[words[noun_at]], noun_at)
            self.write(korean_words.PREPOSITIONS[words[preposition_at]], preposition_at)
        if clause.object is not None:
            self.phrase(clause.object, OBJECT)
        stem = english_sentences.korean_stem(words[clause.verb_at], is_last=is_last)
        self.write(stem, clause.verb_at)
        if is_last:
            self.write(korean_words.FULL_STOP_ENDING, clause.verb_at)
        else:
            self.write(korean_words.LINKING_ENDING, clause.end)


def _pair(words: list[str], clauses: list[EnglishClause]) -> Pair:
    """Translate parsed clauses, the last one closed with 다 and others linked with 고."""
    korean = _Writer(words)
    for clause in clauses:
        korean.clause(clause, is_last=clause is clauses[-1])
    return Pair(tuple(words), tuple(korean.tokens), tuple(korean.sources))


# Glosses: the source word that a target token comes from in most pairs. 달걀 comes from “egg” each
# time, the particle 이 from the noun before it and from “a”. An ending that follows every verb
# comes from another word each time, so it has no gloss.

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
