"""Sentences of the toy English grammar, and their exact entropy: no model can do better than it.

A sentence is drawn by independent choices (tense, verb, time, nouns, articles, adjectives, place;
see ``data.text.english_sentences.clause``). Different choices give different words, so the entropy
of a sentence is the sum of the entropies of its choices (the chain rule), each weighted with the
chance that it has to be made. The lowest loss per token is then H(sentence) / E[tokens], with <eos>
counted as a token.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import permutations
from math import log

from tfm_core.data.text import english_sentences as english
from tfm_core.data.text.korean_words import NOUNS, PLACES, TIMES, VERBS, Noun, Verb

_JOINED, _ADJECTIVE, _TIME, _PLACE, _PLACE_ADJECTIVE = 0.3, 0.35, 0.4, 0.35, 0.2
_SIZES = ("big", "small")  # adjectives of places
Weight = Callable[[str], float]
Sum = tuple[float, float]  # entropy in nats, expected length


def sentence(rng: random.Random) -> tuple[str, ...]:
    """Draw the words of one sentence of one clause."""
    return tuple(english.one_clause(rng))


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
    times = [word for word, (_, when) in TIMES.items() if when in (past, None)]
    entropy = _coin(_TIME) + _TIME * (log(len(times)) + log(2))  # which, and at which end
    length = _TIME * _mean([weigh(time) for time in times])
    place = _place(verb, weigh)
    entropy, length = entropy + place[0], length + place[1]
    subjects = [noun for group in verb.subjects for noun in NOUNS[group]]
    objects = [noun for group in verb.objects for noun in NOUNS[group]]
    shares = {"subject": _JOINED / 2, "object": _JOINED / 2, "": 1 - _JOINED}
    if not objects:
        shares = {"subject": _JOINED / 2, "": 1 - _JOINED / 2}
    entropy -= sum(share * log(share) for share in shares.values())
    for join, share in shares.items():
        is_plural = join == "subject"
        form = verb.past if past else verb.plural if is_plural else verb.singular
        phrases = _phrases(subjects, objects, join, weigh)
        entropy += share * phrases[0]
        length += share * (phrases[1] + weigh(form))
    return entropy, length


def _phrases(subjects: list[Noun], objects: list[Noun], join: str, weigh: Weight) -> Sum:
    """Return subject and object: the object is none of the subject's nouns."""
    entropy = length = 0.0
    chosen = list(permutations(subjects, 2 if join == "subject" else 1))
    for nouns in chosen:
        entropy += sum(_noun(noun, weigh)[0] for noun in nouns) + log(len(chosen))
        length += sum(_noun(noun, weigh)[1] for noun in nouns) + (len(nouns) - 1) * weigh("and")
        if objects:
            others = [noun for noun in objects if noun not in nouns]
            n = 2 if join == "object" else 1
            entropy += log(len(others)) + (log(len(others) - 1) if n == 2 else 0.0)
            entropy += n * _mean([_noun(noun, weigh)[0] for noun in others])
            length += n * _mean([_noun(noun, weigh)[1] for noun in others])
            length += (n - 1) * weigh("and")
    return entropy / len(chosen), length / len(chosen)


def _noun(noun: Noun, weigh: Weight) -> Sum:
    """Return article and adjective of a noun that is given."""
    entropy = _coin(_ADJECTIVE) + _ADJECTIVE * log(len(noun.adjectives)) + log(2)
    bare = _article(noun.english, weigh)
    described = _mean([_article(word, weigh) + weigh(word) for word in noun.adjectives])
    length = (1 - _ADJECTIVE) * bare + _ADJECTIVE * described + weigh(noun.english)
    return entropy, length


def _article(following: str, weigh: Weight) -> float:
    return (weigh("the") + weigh("an" if following[0] in "aeiou" else "a")) / 2


def _place(verb: Verb, weigh: Weight) -> Sum:
    if not verb.place:
        return 0.0, 0.0
    is_always = verb.place == "to"
    entropy = log(len(PLACES)) + _coin(_PLACE_ADJECTIVE) + _PLACE_ADJECTIVE * log(len(_SIZES))
    words = [
        weigh("to" if is_always else place.preposition) + weigh("the") + weigh(place.english)
        for place in PLACES
    ]
    length = _mean(words) + _PLACE_ADJECTIVE * _mean([weigh(word) for word in _SIZES])
    if is_always:
        return entropy, length
    return _coin(_PLACE) + _PLACE * entropy, _PLACE * length


def _coin(share: float) -> float:
    return -share * log(share) - (1 - share) * log(1 - share)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
