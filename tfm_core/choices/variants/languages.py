"""The languages of captions."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Language(Variant):
    """grammar: how its captions are written, and of which words."""

    grammar: str


ENGLISH = Language(
    name="english",
    source="a toy grammar of this app",
    grammar="tfm_core.data.caption_words:ENGLISH_GRAMMAR",
)
KOREAN = Language(
    name="korean",
    source="a toy grammar of this app",
    grammar="tfm_core.data.caption_words:KOREAN_GRAMMAR",
)

LANGUAGES = Registry("language", ENGLISH, KOREAN)
