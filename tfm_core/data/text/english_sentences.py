"""The English side of the toy grammar: sentences drawn, read, and completed with exact chances.

sentence = clause | clause "and" clause
clause   = [time] phrase verb [phrase] [place] [time]      (one time at most)
phrase   = noun phrase | noun phrase "and" noun phrase
place    = ("in" | "at" | "to") article [adjective] place noun

The grammar is small enough to know what a masked language model can only estimate: all derivations
that fit a sentence with gaps are walked through, and those that contradict a visible word are
dropped at once. A test holds the chances against sentences that were really drawn.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import permutations
from math import log
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
PAST = {verb.past for verb in VERBS}
TIMES_OF = {past: [t for t, (_, when) in TIMES.items() if when in (past, None)] for past in (0, 1)}
PLACE_ADJECTIVES = ("big", "small")
# chances in a draw; at most one part of a clause is two nouns
TWO_NOUNS, HAS_TIME, HAS_ADJECTIVE, HAS_PLACE, HAS_PLACE_ADJECTIVE = 0.3, 0.4, 0.35, 0.35, 0.2
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
    if verb in PAST:
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
    join = rng.choice(may_join) if rng.random() < TWO_NOUNS else ""
    time = rng.choice(TIMES_OF[is_past]) if rng.random() < HAS_TIME else None
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
    if verb.place and (verb.place == "to" or rng.random() < HAS_PLACE):
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
    first_noun = _noun(rng, words, first)
    and_at = len(words)
    words.append(AND)
    return Phrase((first_noun, _noun(rng, words, second)), and_at)


def _noun(rng: random.Random, words: list[str], noun: Noun) -> tuple[int, int | None, int]:
    adjective = rng.choice(noun.adjectives) if rng.random() < HAS_ADJECTIVE else None
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
    if rng.random() < HAS_PLACE_ADJECTIVE:
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
    for first, end in _read_noun(words, at, ALL_NOUNS):
        yield Phrase((first,)), end
        if end < len(words) and words[end] == AND:
            for second, last in _read_noun(words, end + 1, ALL_NOUNS):
                yield Phrase((first, second), end), last


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


# Completions


Pattern = tuple[str | None, ...]
"""A sentence of one clause; None is a gap."""

_JOINED = {  # (subject, object)
    (False, False): 1 - TWO_NOUNS,
    (True, False): TWO_NOUNS / 2,
    (False, True): TWO_NOUNS / 2,
}


class _Words(NamedTuple):
    """Words of a part of the sentence, where they end, the nouns in them, and their chance."""

    words: tuple[str, ...]
    end: int
    nouns: tuple[str, ...]
    chance: float


def completions(pattern: Sequence[str | None]) -> dict[tuple[str, ...], float]:
    """Return each sentence that fits the pattern and the chance that a draw gives it.

    Empty where none fits. Takes about a millisecond for one or two gaps, far more for many.
    """
    walk = _Walk(tuple(pattern))
    chances: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for words, chance in walk.sentences():
        chances[words] += chance
    return dict(chances)


def is_possible(words: list[str], n_clauses: int) -> bool:
    """Return whether ``clause`` can draw the words, in ``n_clauses`` clauses of one tense."""
    for clauses in parses(words, n_clauses):
        starts = [0, *(clause.end + 1 for clause in clauses)]
        parts = [words[start : clause.end] for start, clause in zip(starts, clauses, strict=False)]
        is_of_one_tense = len({words[clause.verb_at] in PAST for clause in clauses}) == 1
        if len(clauses) == n_clauses and is_of_one_tense and all(map(completions, parts)):
            return True
    return False


class _Walk:
    """The derivations of one clause that fit a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._words = set(pattern)
        self._found: dict[tuple[int, tuple[Noun, ...], bool], list[_Words]] = {}

    def sentences(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield words and chance of every derivation; a sentence may come up more than once."""
        for is_past in (False, True):
            for time in (None, *TIMES_OF[is_past]):
                if time is None:
                    yield from self._clauses(is_past, (), (), 0.5 * (1 - HAS_TIME))
                    continue
                share = 0.5 / len(TIMES_OF[is_past])
                if self._fits((time,), 0):
                    yield from self._clauses(is_past, (time,), (), share * HAS_TIME / 2)
                if self._fits((time,), len(self.pattern) - 1):
                    yield from self._clauses(is_past, (), (time,), share * HAS_TIME / 2)

    def _clauses(
        self, is_past: bool, before: tuple[str, ...], after: tuple[str, ...], chance: float
    ) -> Iterator[tuple[tuple[str, ...], float]]:
        end = len(self.pattern) - len(after)
        for verb in VERBS:
            for (joins_subject, joins_object), join in _JOINED.items():
                form = verb.past if is_past else verb.plural if joins_subject else verb.singular
                if not self._may_hold(form):
                    continue
                for subject in self._phrases(
                    len(before), candidates(verb.subjects), is_joined=joins_subject
                ):
                    if not self._fits((form,), subject.end):
                        continue
                    begun = (*before, *subject.words, form)
                    so_far = chance * join * subject.chance / len(VERBS)
                    for rest in self._rest(verb, subject, end, is_joined=joins_object):
                        yield (*begun, *rest.words, *after), so_far * rest.chance

    def _rest(self, verb: Verb, subject: _Words, end: int, *, is_joined: bool) -> Iterator[_Words]:
        """Yield what may stand behind the verb up to ``end``: object and place."""
        at = subject.end + 1
        objects = [_Words((), at, (), 1.0)]
        if verb.objects:
            others = tuple(n for n in candidates(verb.objects) if n.english not in subject.nouns)
            objects = self._phrases(at, others, is_joined=is_joined)
        for thing in objects:
            for words, chance in place_phrases(verb):
                if thing.end + len(words) == end and self._fits(words, thing.end):
                    yield _Words((*thing.words, *words), end, (), thing.chance * chance)

    def _phrases(self, at: int, nouns: tuple[Noun, ...], *, is_joined: bool) -> list[_Words]:
        key = (at, nouns, is_joined)
        if key not in self._found:
            self._found[key] = list(self._two(at, nouns) if is_joined else self._one(at, nouns))
        return self._found[key]

    def _one(self, at: int, nouns: tuple[Noun, ...]) -> Iterator[_Words]:
        for noun in nouns:
            if not self._may_hold(noun.english):
                continue
            for words, chance in noun_phrases(noun):
                if self._fits(words, at):
                    yield _Words(words, at + len(words), (noun.english,), chance / len(nouns))

    def _two(self, at: int, nouns: tuple[Noun, ...]) -> Iterator[_Words]:
        for first in self._one(at, nouns):
            if not self._fits((AND,), first.end):
                continue
            others = tuple(noun for noun in nouns if noun.english not in first.nouns)
            for second in self._phrases(first.end + 1, others, is_joined=False):
                yield _Words(
                    (*first.words, AND, *second.words),
                    second.end,
                    first.nouns + second.nouns,
                    first.chance * second.chance,
                )

    def _may_hold(self, word: str) -> bool:
        """Return whether a word stands somewhere in the pattern, or may stand in a gap."""
        return word in self._words or None in self._words

    def _fits(self, words: tuple[str, ...], at: int) -> bool:
        if at < 0 or at + len(words) > len(self.pattern):
            return False
        for seen, word in zip(self.pattern[at:], words, strict=False):  # quicker than all(...)
            if seen is not None and seen != word:
                return False
        return True


@cache
def noun_phrases(noun: Noun) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Return the phrases that a noun alone can make, each with its chance."""
    forms = []
    adjectives: list[tuple[str | None, float]] = [(None, 1 - HAS_ADJECTIVE)]
    adjectives += [(word, HAS_ADJECTIVE / len(noun.adjectives)) for word in noun.adjectives]
    for adjective, chance in adjectives:
        words = (noun.english,) if adjective is None else (adjective, noun.english)
        unknown = "an" if words[0][0] in "aeiou" else "a"
        forms += [((article, *words), 0.5 * chance) for article in ("the", unknown)]
    return tuple(forms)


@cache
def place_phrases(verb: Verb) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Return the places that may stand behind a verb, the empty one too, each with its chance."""
    needs = verb.place == "to"
    phrases: list[tuple[tuple[str, ...], float]] = []
    if not needs:
        phrases.append(((), 1 - HAS_PLACE if verb.place else 1.0))
    if verb.place:
        for place in PLACES:
            chance = (1.0 if needs else HAS_PLACE) / len(PLACES)
            start = ("to" if needs else place.preposition, "the")
            phrases.append(((*start, place.english), (1 - HAS_PLACE_ADJECTIVE) * chance))
            phrases += [
                (
                    (*start, adjective, place.english),
                    HAS_PLACE_ADJECTIVE * chance / len(PLACE_ADJECTIVES),
                )
                for adjective in PLACE_ADJECTIVES
            ]
    return tuple(phrases)


# The exact entropy of a sentence: no model can do better than it. Different choices give different
# words, so it is the sum of the entropies of the choices (the chain rule), each weighted with the
# chance that it has to be made. The lowest loss per token is H(sentence) / E[tokens], with <eos>.


Words = tuple[str, ...]
Weight = Callable[[str], float]
Sum = tuple[float, float]  # entropy in nats, expected length


@lru_cache(maxsize=2)
def entropy_per_token(unit: str) -> float:
    """Return the entropy of a sentence in nats, divided by its mean number of tokens with <eos>.

    unit: "words", or "characters" of the sentence as it is written, with its full stop.
    """
    weigh: Weight = (lambda word: 1.0) if unit == "words" else (lambda word: len(word) + 1.0)
    parts = [_clause(verb, past, weigh) for verb in VERBS for past in (False, True)]
    entropy = log(2) + log(len(VERBS)) + _mean([part[0] for part in parts])
    return entropy / (_mean([part[1] for part in parts]) + 1)


def _clause(verb: Verb, past: bool, weigh: Weight) -> Sum:
    """Return what follows the choice of verb and tense: its entropy, and the length of it all."""
    times = TIMES_OF[past]
    entropy = entropy_of((HAS_TIME, 1 - HAS_TIME))
    entropy += HAS_TIME * (log(len(times)) + log(2))  # which, and at which end
    length = HAS_TIME * _mean([weigh(time) for time in times])
    place = _sum(place_phrases(verb), weigh)
    entropy, length = entropy + place[0], length + place[1]
    subjects, objects = candidates(verb.subjects), candidates(verb.objects)
    each = TWO_NOUNS / 2
    shares = {"subject": each, "object": each, "": 1 - TWO_NOUNS}
    if not objects:
        shares = {"subject": each, "": 1 - each}
    entropy += entropy_of([*shares.values()])
    for join, share in shares.items():
        is_plural = join == "subject"
        form = verb.past if past else verb.plural if is_plural else verb.singular
        phrases = _phrases(subjects, objects, join, weigh)
        entropy += share * phrases[0]
        length += share * (phrases[1] + weigh(form))
    return entropy, length


def _phrases(subjects: Sequence[Noun], objects: Sequence[Noun], join: str, weigh: Weight) -> Sum:
    """Return subject and object: the object is none of the subject's nouns."""
    sums = {noun: _sum(noun_phrases(noun), weigh) for noun in (*subjects, *objects)}
    entropy = length = 0.0
    chosen = list(permutations(subjects, 2 if join == "subject" else 1))
    for nouns in chosen:
        entropy += sum(sums[noun][0] for noun in nouns) + log(len(chosen))
        length += sum(sums[noun][1] for noun in nouns) + (len(nouns) - 1) * weigh("and")
        if objects:
            others = [noun for noun in objects if noun not in nouns]
            n = 2 if join == "object" else 1
            entropy += log(len(others)) + (log(len(others) - 1) if n == 2 else 0.0)
            entropy += n * _mean([sums[noun][0] for noun in others])
            length += n * _mean([sums[noun][1] for noun in others])
            length += (n - 1) * weigh("and")
    return entropy / len(chosen), length / len(chosen)


def _sum(phrases: Iterable[tuple[Words, float]], weigh: Weight) -> Sum:
    """Return the entropy and the mean length of phrases, each with its chance."""
    every = list(phrases)
    length = sum(chance * sum(map(weigh, words)) for words, chance in every)
    return entropy_of([chance for _words, chance in every]), length


def entropy_of(shares: Sequence[float]) -> float:
    """Return the entropy of probabilities in nats."""
    return -sum(share * log(share) for share in shares if share > 0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
