"""The English side of the toy grammar: drawing sentences, and reading those that a person types.

sentence = clause | clause "and" clause
clause   = [time] phrase verb [phrase] [place] [time]      (one time at most)
phrase   = noun phrase | noun phrase "and" noun phrase
place    = ("in" | "at" | "to") article [adjective] place noun
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tfm_core.data.text.korean_words import (
    ADJECTIVES,
    ALL_NOUNS,
    ALL_PLACES,
    AND,
    ARTICLES,
    NOUNS,
    PLACES,
    PREPOSITIONS,
    TIMES,
    VERBS,
    Noun,
    Verb,
)

_FORMS = {form: verb for verb in VERBS for form in (verb.singular, verb.plural, verb.past)}
_PAST = {verb.past for verb in VERBS}
TIMES_OF = {past: [t for t, (_, when) in TIMES.items() if when in (past, None)] for past in (0, 1)}
PLACE_ADJECTIVES = ("big", "small")
WORDS = {*_FORMS, *ADJECTIVES, *ALL_NOUNS, *ALL_PLACES, *TIMES, *PREPOSITIONS, *ARTICLES, AND}


class Phrase(NamedTuple):
    """Where one or two noun phrases stand: (article, adjective or None, noun) each."""

    nouns: tuple[tuple[int, int | None, int], ...]
    and_at: int = -1


@dataclass(frozen=True, slots=True)
class EnglishClause:
    """Where the parts of a clause stand; ``place`` is (preposition, adjective or None, noun)."""

    subject: Phrase
    verb_at: int
    object: Phrase | None
    place: tuple[int, int | None, int] | None
    time_at: int | None
    end: int


def korean_stem(verb: str, *, is_last: bool) -> str:
    """Return the Korean stem form of an English verb form, before 다 (last clause) or 고."""
    forms = _FORMS[verb]
    if verb in _PAST:
        return forms.korean_past
    return forms.korean_final if is_last else forms.korean_linking


@cache
def candidates(groups: tuple[str, ...]) -> tuple[Noun, ...]:
    """Return the nouns of several groups."""
    return tuple(noun for group in groups for noun in NOUNS[group])


def one_clause(rng: random.Random) -> list[str]:
    """Return the words of a sentence of one clause, in the present or the past."""
    words: list[str] = []
    is_past = rng.random() < 0.5
    clause(rng, words, is_past=is_past, may_join=("subject", "object"))
    return words


def clause(
    rng: random.Random, words: list[str], *, is_past: bool, may_join: tuple[str, ...]
) -> EnglishClause:
    """Append the words of a random clause to ``words`` and return where its parts stand.

    At most one of the parts in ``may_join`` ("subject", "object") is two nouns joined by "and".
    """
    verb = rng.choice(VERBS)
    join = rng.choice(may_join) if rng.random() < 0.3 else ""
    time = rng.choice(TIMES_OF[is_past]) if rng.random() < 0.4 else None
    time_first = rng.random() < 0.5
    time_at = None
    if time and time_first:
        time_at = len(words)
        words.append(time)
    subject = _phrase(rng, words, candidates(verb.subjects), is_joined=join == "subject")
    verb_at = len(words)
    is_plural = len(subject.nouns) > 1
    words.append(verb.past if is_past else verb.plural if is_plural else verb.singular)
    target = place = None
    if verb.objects:
        named = {words[noun_at] for _, _, noun_at in subject.nouns}
        others = tuple(n for n in candidates(verb.objects) if n.english not in named)
        target = _phrase(rng, words, others, is_joined=join == "object")
    if verb.place and (verb.place == "to" or rng.random() < 0.35):
        place = _place(rng, words, verb)
    if time and not time_first:
        time_at = len(words)
        words.append(time)
    return EnglishClause(subject, verb_at, target, place, time_at, len(words))


def _phrase(
    rng: random.Random, words: list[str], nouns: tuple[Noun, ...], *, is_joined: bool
) -> Phrase:
    if not is_joined:
        return Phrase((_noun(rng, words, rng.choice(nouns)),))
    first, second = rng.sample(nouns, 2)
    one = _noun(rng, words, first)
    and_at = len(words)
    words.append(AND)
    return Phrase((one, _noun(rng, words, second)), and_at)


def _noun(rng: random.Random, words: list[str], noun: Noun) -> tuple[int, int | None, int]:
    adjective = rng.choice(noun.adjectives) if rng.random() < 0.35 else None
    is_known = rng.random() < 0.5
    following = adjective or noun.english
    words.append("the" if is_known else "an" if following[0] in "aeiou" else "a")
    at = len(words)
    if adjective is None:
        words.append(noun.english)
        return at - 1, None, at
    words += [adjective, noun.english]
    return at - 1, at, at + 1


def _place(rng: random.Random, words: list[str], verb: Verb) -> tuple[int, int | None, int]:
    place = rng.choice(PLACES)
    at = len(words)
    words += ["to" if verb.place == "to" else place.preposition, "the"]
    if rng.random() < 0.2:
        words += [rng.choice(PLACE_ADJECTIVES), place.english]
        return at, at + 2, at + 3
    words.append(place.english)
    return at, None, at + 2


def parses(words: list[str], n_clauses: int) -> Iterator[list[EnglishClause]]:
    """Yield every way to read the words as one sentence of up to ``n_clauses`` clauses."""
    for first in _read_clause(words, 0):
        if first.end == len(words):
            yield [first]
        elif n_clauses > 1 and words[first.end] == AND:
            for second in _read_clause(words, first.end + 1):
                if second.end == len(words):
                    yield [first, second]


def is_possible(words: list[str], n_clauses: int) -> bool:
    """Return whether ``clause`` can draw the words, in ``n_clauses`` clauses of one tense."""
    return any(
        len(clauses) == n_clauses
        and len({words[clause.verb_at] in _PAST for clause in clauses}) == 1
        and all(_is_natural(words, clause) for clause in clauses)
        for clauses in parses(words, n_clauses)
    )


def _is_natural(words: list[str], clause: EnglishClause) -> bool:
    """Return whether verb, nouns, adjectives, articles, place and time of a clause go together."""
    verb, form = _FORMS[words[clause.verb_at]], words[clause.verb_at]
    is_past = form == verb.past
    agrees = form == (verb.plural if len(clause.subject.nouns) > 1 else verb.singular)
    subjects = [words[noun_at] for _, _, noun_at in clause.subject.nouns]
    objects = [] if clause.object is None else [words[at] for _, _, at in clause.object.nouns]
    named = [*subjects, *objects]
    place = clause.place is None or _is_natural_place(words, clause.place, verb)
    return (
        (is_past or agrees)
        and bool(objects) == bool(verb.objects)
        and len(set(named)) == len(named)
        and not (len(subjects) > 1 and len(objects) > 1)
        and all(_goes_with(words, noun, verb.subjects) for noun in clause.subject.nouns)
        and all(
            _goes_with(words, noun, verb.objects)
            for noun in (() if clause.object is None else clause.object.nouns)
        )
        and place
        and (clause.place is not None or verb.place != "to")
        and (clause.time_at is None or words[clause.time_at] in TIMES_OF[is_past])
    )


def _goes_with(
    words: list[str], noun: tuple[int, int | None, int], groups: tuple[str, ...]
) -> bool:
    article_at, adjective_at, noun_at = noun
    known = {each.english: each.adjectives for each in candidates(groups)}
    if words[noun_at] not in known:
        return False
    if adjective_at is not None and words[adjective_at] not in known[words[noun_at]]:
        return False
    following = words[article_at + 1]
    return words[article_at] in ("the", "an" if following[0] in "aeiou" else "a")


def _is_natural_place(words: list[str], place: tuple[int, int | None, int], verb: Verb) -> bool:
    preposition_at, adjective_at, noun_at = place
    here = next(each.preposition for each in PLACES if each.english == words[noun_at])
    return (
        bool(verb.place)
        and words[preposition_at] == ("to" if verb.place == "to" else here)
        and words[preposition_at + 1] == "the"
        and (adjective_at is None or words[adjective_at] in PLACE_ADJECTIVES)
    )


def _read_clause(words: list[str], at: int) -> Iterator[EnglishClause]:
    time_at = at if at < len(words) and words[at] in TIMES else None
    for subject, verb_at in _read_phrase(words, at + (time_at is not None)):
        if verb_at >= len(words) or words[verb_at] not in _FORMS:
            continue
        verb = _FORMS[words[verb_at]]
        targets = _read_phrase(words, verb_at + 1) if verb.objects else [(None, verb_at + 1)]
        for target, end in targets:
            place, end = _read_place(words, end)
            if place is not None and (words[place[0]] == "to") != (verb.place == "to"):
                continue
            if time_at is None and end < len(words) and words[end] in TIMES:
                yield EnglishClause(subject, verb_at, target, place, end, end + 1)
            else:
                yield EnglishClause(subject, verb_at, target, place, time_at, end)


def _read_phrase(words: list[str], at: int) -> Iterator[tuple[Phrase, int]]:
    for one, end in _read_noun(words, at, ALL_NOUNS):
        yield Phrase((one,)), end
        if end < len(words) and words[end] == AND:
            for two, last in _read_noun(words, end + 1, ALL_NOUNS):
                yield Phrase((one, two), end), last


def _read_noun(
    words: list[str], at: int, nouns: dict[str, str]
) -> Iterator[tuple[tuple[int, int | None, int], int]]:
    adjective_at = at + 1 if at + 1 < len(words) and words[at + 1] in ADJECTIVES else None
    noun_at = at + 1 + (adjective_at is not None)
    if noun_at < len(words) and words[at] in ARTICLES and words[noun_at] in nouns:
        yield (at, adjective_at, noun_at), noun_at + 1


def _read_place(words: list[str], at: int) -> tuple[tuple[int, int | None, int] | None, int]:
    if at < len(words) and words[at] in PREPOSITIONS:
        for (_, adjective_at, noun_at), end in _read_noun(words, at + 1, ALL_PLACES):
            return (at, adjective_at, noun_at), end
    return None, at
