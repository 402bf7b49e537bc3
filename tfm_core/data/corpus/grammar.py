"""Sentences of the toy English grammar, and their exact entropy: no model can do better than it.

A sentence is drawn by independent choices (tense, verb, time, nouns, articles, adjectives, place;
see ``data.text.english_sentences.clause``). Different choices give different words, so the entropy
of a sentence is the sum of the entropies of its choices (the chain rule), each weighted with the
chance that it has to be made. The lowest loss per token is then H(sentence) / E[tokens], with <eos>
counted as a token.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import permutations
from math import log

from tfm_core.data.text import english_sentences as english
from tfm_core.data.text.english_sentences import noun_phrases, place_phrases
from tfm_core.data.text.korean_words import VERBS, Noun, Verb
from tfm_core.data.text.masked_words import entropy as entropy_of

Words = tuple[str, ...]
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
    times = english.TIMES_OF[past]
    entropy = entropy_of((english.HAS_TIME, 1 - english.HAS_TIME))
    entropy += english.HAS_TIME * (log(len(times)) + log(2))  # which, and at which end
    length = english.HAS_TIME * _mean([weigh(time) for time in times])
    place = _sum(place_phrases(verb), weigh)
    entropy, length = entropy + place[0], length + place[1]
    subjects, objects = english.candidates(verb.subjects), english.candidates(verb.objects)
    each = english.TWO_NOUNS / 2
    shares = {"subject": each, "object": each, "": 1 - english.TWO_NOUNS}
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


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
