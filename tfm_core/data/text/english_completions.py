"""Every sentence of the toy English that fits one with gaps, with the exact chance to draw it.

The grammar is small enough to know what a masked language model can only estimate: all its
derivations are walked through, and those that contradict a visible word are dropped at once. A test
holds the chances against sentences that were really drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from tfm_core.data.text.english_sentences import PLACE_ADJECTIVES, TIMES_OF, candidates
from tfm_core.data.text.korean_words import AND, PLACES, VERBS, Noun, Verb

Pattern = tuple[str | None, ...]
"""A sentence of one clause; None is a gap."""

_JOINED = {(False, False): 0.7, (True, False): 0.15, (False, True): 0.15}  # (subject, object)
_NO_TIME, _TIME_FIRST, _TIME_LAST = 0.6, 0.2, 0.2
_HAS_PLACE = 0.35


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


class _Walk:
    """The derivations of one clause that fit a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._phrases: dict[tuple[int, tuple[Noun, ...], bool], list[_Words]] = {}

    def sentences(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield words and chance of every derivation; a sentence may come up more than once."""
        for is_past in (False, True):
            for time in (None, *TIMES_OF[is_past]):
                if time is None:
                    yield from self._clauses(is_past, (), (), 0.5 * _NO_TIME)
                    continue
                share = 0.5 / len(TIMES_OF[is_past])
                if self._fits((time,), 0):
                    yield from self._clauses(is_past, (time,), (), share * _TIME_FIRST)
                if self._fits((time,), len(self.pattern) - 1):
                    yield from self._clauses(is_past, (), (time,), share * _TIME_LAST)

    def _clauses(
        self, is_past: bool, before: tuple[str, ...], after: tuple[str, ...], chance: float
    ) -> Iterator[tuple[tuple[str, ...], float]]:
        end = len(self.pattern) - len(after)
        for verb in VERBS:
            for (joins_subject, joins_object), join in _JOINED.items():
                form = verb.past if is_past else verb.plural if joins_subject else verb.singular
                for subject in self._phrase(
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
            objects = self._phrase(at, others, is_joined=is_joined)
        for thing in objects:
            for words, chance in _places(verb):
                if thing.end + len(words) == end and self._fits(words, thing.end):
                    yield _Words((*thing.words, *words), end, (), thing.chance * chance)

    def _phrase(self, at: int, nouns: tuple[Noun, ...], *, is_joined: bool) -> list[_Words]:
        key = (at, nouns, is_joined)
        if key not in self._phrases:
            self._phrases[key] = list(self._two(at, nouns) if is_joined else self._one(at, nouns))
        return self._phrases[key]

    def _one(self, at: int, nouns: tuple[Noun, ...]) -> Iterator[_Words]:
        for noun in nouns:
            for words, chance in _forms(noun):
                if self._fits(words, at):
                    yield _Words(words, at + len(words), (noun.english,), chance / len(nouns))

    def _two(self, at: int, nouns: tuple[Noun, ...]) -> Iterator[_Words]:
        for one in self._one(at, nouns):
            if not self._fits((AND,), one.end):
                continue
            others = tuple(noun for noun in nouns if noun.english not in one.nouns)
            for two in self._phrase(one.end + 1, others, is_joined=False):
                yield _Words(
                    (*one.words, AND, *two.words),
                    two.end,
                    one.nouns + two.nouns,
                    one.chance * two.chance,
                )

    def _fits(self, words: tuple[str, ...], at: int) -> bool:
        if at < 0 or at + len(words) > len(self.pattern):
            return False
        for seen, word in zip(self.pattern[at:], words, strict=False):  # quicker than all(...)
            if seen is not None and seen != word:
                return False
        return True


@cache
def _forms(noun: Noun) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Return the phrases that a noun alone can make, each with its chance."""
    forms = []
    adjectives = [(None, 0.65), *((word, 0.35 / len(noun.adjectives)) for word in noun.adjectives)]
    for adjective, chance in adjectives:
        words = (noun.english,) if adjective is None else (adjective, noun.english)
        unknown = "an" if words[0][0] in "aeiou" else "a"
        forms += [((article, *words), 0.5 * chance) for article in ("the", unknown)]
    return tuple(forms)


@cache
def _places(verb: Verb) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Return the places that may stand behind a verb, the empty one too, each with its chance."""
    needs = verb.place == "to"
    phrases: list[tuple[tuple[str, ...], float]] = []
    if not needs:
        phrases.append(((), 1 - _HAS_PLACE if verb.place else 1.0))
    if verb.place:
        for place in PLACES:
            chance = (1.0 if needs else _HAS_PLACE) / len(PLACES)
            start = ("to" if needs else place.preposition, "the")
            phrases.append(((*start, place.english), 0.8 * chance))
            phrases += [
                ((*start, adjective, place.english), 0.2 * chance / len(PLACE_ADJECTIVES))
                for adjective in PLACE_ADJECTIVES
            ]
    return tuple(phrases)
