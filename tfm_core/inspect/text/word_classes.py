"""What kind of word a token is, by the tables of the toy grammar: noun, verb, particle, ..."""

from __future__ import annotations

from functools import cache

from tfm_core.data.text import korean_words
from tfm_core.data.text.english_korean import SUFFIXES
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.sentences import N_

CLASSES = (
    "people",
    "animals",
    "food",
    "things",
    "place",
    N_("verb, present"),
    N_("verb, past"),
    "adjective",
    "time",
    N_("function word"),
    N_("particle or ending"),
    "digit",
    "letter",
    "sign",
    "word",
    "special",
)
"""In the order in which figures and legends show them."""


def class_of(task: str, token: str) -> str:
    """Return the class of a token of a task's vocabulary, one of ``CLASSES``."""
    if token in SPECIALS:
        return "special"
    if task == "english-korean":
        return _grammar().get(token, "word")
    if token.isdigit():
        return "digit"
    if len(token) == 1:
        return "letter" if token.isalpha() else "sign"
    return "word"


def by_class(classes: tuple[str, ...]) -> list[int]:
    """Return the places of tokens ordered by class, those of one class as they stand."""
    return sorted(range(len(classes)), key=lambda index: CLASSES.index(classes[index]))


@cache
def _grammar() -> dict[str, str]:
    classes: dict[str, str] = {}
    for verb in korean_words.VERBS:
        for form in (verb.singular, verb.plural, verb.korean_final, verb.korean_linking):
            classes[form] = N_("verb, present")
        for form in (verb.past, verb.korean_past):
            classes[form] = N_("verb, past")
    for english, korean in korean_words.ADJECTIVES.items():
        classes |= dict.fromkeys((english, korean), "adjective")
    for group, nouns in korean_words.NOUNS.items():
        for noun in nouns:
            classes |= dict.fromkeys((noun.english, noun.korean), group)
    for location in korean_words.PLACES:
        classes |= dict.fromkeys((location.english, location.korean), "place")
    for english, (korean, _when) in korean_words.TIMES.items():
        classes |= dict.fromkeys((english, korean), "time")
    function = (*korean_words.PREPOSITIONS, *korean_words.ARTICLES, korean_words.AND)
    classes |= dict.fromkeys(function, N_("function word"))
    return classes | dict.fromkeys(SUFFIXES, N_("particle or ending"))
