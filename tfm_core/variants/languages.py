"""The languages of captions."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Language(Variant):
    """grammar: how its captions are written, and of which words."""

    grammar: str


ENGLISH = Language(
    name="english",
    label=N_("English"),
    help=N_("“a three above a seven”: with articles."),
    source="a toy grammar of this app",
    grammar="tfm_core.data.caption_words:ENGLISH_GRAMMAR",
)
KOREAN = Language(
    name="korean",
    label=N_("Korean"),
    help=N_("“삼은 칠 위에 있다”: verb last, with particles."),
    source="a toy grammar of this app",
    grammar="tfm_core.data.caption_words:KOREAN_GRAMMAR",
)

LANGUAGES = Registry("language", ENGLISH, KOREAN)
