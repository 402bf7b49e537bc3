"""Sentences in a language: a catalogue of gettext, values filled in, and Korean particles.

Pages have the language of their session (``pages/i18n.py``), the command line that of its
environment. A language is a catalogue ``<language>/LC_MESSAGES/pages.mo`` of the app.
"""

from __future__ import annotations

import gettext
import string
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tfm_core.korean import ENDINGS, with_particle
from tfm_core.sentences import CountedSentence, Paragraph, Sentence, StudentError

Catalogue = gettext.NullTranslations


def translate(
    text: str | BaseException | None,
    values: dict[str, object],
    *,
    language: str,
    catalogue: Catalogue,
    say: Callable[[Any], str],
) -> str:
    """Return a text in a language, with its values filled in; "" for None.

    An error of the app gives its sentence. say: translates sentences among the values.
    """
    if isinstance(text, BaseException):
        return say(text.sentence) if isinstance(text, StudentError) else str(text)
    if not text:
        return ""  # gettext would answer with the head of its catalogue
    if isinstance(text, Paragraph):
        return filled(text.template_in(language), text.values | values, say)
    if not isinstance(text, Sentence):
        return filled(catalogue.gettext(text), values, say)
    if isinstance(text, CountedSentence):
        template = catalogue.ngettext(*text.forms, text.n)
    else:
        template = catalogue.gettext(text.template)
    return filled(template, text.values | values, say)


def filled(template: str, values: Mapping[str, object], say: Callable[[Any], str]) -> str:
    """Return a template with its values; ``say`` translates those that are sentences."""
    if not values:
        return template
    has_sentence = any(isinstance(value, Sentence | StudentError) for value in values.values())
    if not has_sentence:
        with suppress(ValueError, TypeError):  # a particle, which is no format of Python's
            return template.format(**values)
    return _Formatter(say).vformat(template, (), values)


class _Formatter(string.Formatter):
    """``str.format`` that translates sentences among the values and adds Korean particles."""

    def __init__(self, say: Callable[[Any], str]) -> None:
        self._say = say

    def format_field(self, value: object, format_spec: str) -> str:
        """Format one value; ``{name:을}`` adds 을 or 를, whichever follows its last sound.

        ``{share:.0f:은}`` formats the number first.
        """
        if isinstance(value, Sentence | StudentError):
            value = self._say(value)
        head, _colon, last = format_spec.rpartition(":")
        if last in ENDINGS:
            return with_particle(self.format_field(value, head), last)
        return str(super().format_field(value, format_spec))
