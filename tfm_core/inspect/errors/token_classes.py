"""What kind of token a token is: its part of speech in the toy languages, else its looks."""

from __future__ import annotations

from functools import cache

from tfm_core.config import Experiment
from tfm_core.data.text import korean_words
from tfm_core.data.text.english_korean import SUFFIXES
from tfm_core.data.text.span_corruption import SENTINELS
from tfm_core.data.vocabulary import EOS, MASK, SPECIALS
from tfm_core.sentences import N_

_TOY = ("english-korean", "masked-words", "span-corruption", "grammar")


def token_class(token: str, experiment: Experiment) -> str:
    """Return the kind of a token, in a word or two."""
    if token == SPECIALS[EOS]:
        return N_("the end")
    if experiment.task.name in _TOY and token in _parts_of_speech():
        return _parts_of_speech()[token]
    return _look(token)


@cache
def _parts_of_speech() -> dict[str, str]:
    words = korean_words
    kinds = {
        N_("adjective"): {*words.ADJECTIVES, *words.ADJECTIVES.values()},
        N_("noun"): {*words.ALL_NOUNS, *words.ALL_NOUNS.values()},
        N_("place"): {*words.ALL_PLACES, *words.ALL_PLACES.values()},
        N_("time"): {*words.TIMES, *(korean for korean, _ in words.TIMES.values())},
        N_("verb"): {
            form
            for verb in words.VERBS
            for form in (
                *(verb.singular, verb.plural, verb.past),
                *(verb.korean_final, verb.korean_linking, verb.korean_past),
            )
        },
        N_("article"): {*words.ARTICLES},
        N_("preposition"): {*words.PREPOSITIONS},
        N_("“and”"): {words.AND},
        N_("particle or ending"): {*SUFFIXES},
        N_("sentinel"): {*SENTINELS, MASK},
    }
    found: dict[str, str] = {}
    for kind, tokens in kinds.items():
        for token in tokens:
            found.setdefault(token, kind)
    return found


def _look(token: str) -> str:
    if token == "\n":
        return N_("line break")
    if token.isspace():
        return N_("space")
    if token.isdigit():
        return N_("number") if len(token) > 1 else N_("digit")
    if not any(character.isalnum() for character in token):
        return N_("sign")
    if len(token) == 1:
        return N_("capital letter") if token.isupper() else N_("letter")
    return N_("word with a capital") if token[0].isupper() else N_("word")
