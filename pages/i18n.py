"""Languages: what a person reads goes through ``_`` where it is drawn; long texts are Markdown.

A language is a catalogue ``locale/<language>/LC_MESSAGES/pages.mo`` and a folder beside each
``content/en``; what it lacks appears in English. Labels and short messages stand in the code, texts
longer than a line in content files: ``paragraph("train/rate")`` here, ``Paragraph`` in the core.
Each session has its own language, from ``?lang=`` in its link, else the server's
(``TFM_LANGUAGE``). It is looked up at every call, so a choice takes effect with the next draw.

Text outside a function, or anywhere in ``tfm_core``, is drawn later, perhaps in another language:
``N_`` marks it there, and ``_`` translates it where it is drawn. No ``_`` runs while a module is
imported. The messages of both are collected with

    pybabel extract -o pages.pot -k N_ -k say -k counted:1,2 -k StudentError -k CrossError:2 \\
        -k LimitReached -k DataUnavailable -k RunNotFound -k RunDamaged -k RunHeld \\
        -k Busy -k StoreUnavailable -k CheckpointDamaged -k TrainingDiverged \\
        -k Unreadable -k NotYours \\
        -k OnlyWatches -k Refused -k TooLarge -k BadData -k SetMissing -k SetDamaged -k _TooMuch \\
        -k SweepNotFound -k SweepDamaged -k NotAStudy -k Unavailable -k JobRefused -k NotItsTurn \\
        -k WrongValue \\
        app.py pages tfm_core
"""

from __future__ import annotations

import gettext
import os
import string
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import streamlit as st

from pages.server.streamlit_internals import get_script_run_ctx
from tfm_core.korean import PARTICLES, with_particle
from tfm_core.runs.disk.failures import refusal
from tfm_core.sentences import N_, CountedSentence, Paragraph, Sentence, StudentError

__all__ = [
    "N_",
    "PAGES_DIR",
    "_",
    "content",
    "language",
    "languages",
    "ngettext",
    "paragraph",
    "speak",
    "speaking",
]

PAGES_DIR = Path(__file__).resolve().parent
LOCALE_DIR = PAGES_DIR / "locale"
CONTENT_DIR = PAGES_DIR / "content"
DEFAULT = os.environ.get("TFM_LANGUAGE", "en")
_LANGUAGE = "language"


class _Cached(threading.local):
    """The language of the session that this thread draws; a page needs it some 600 times."""

    context: object = None
    spoken = DEFAULT
    outside: str | None = None


_CACHED = _Cached()


def languages() -> list[str]:
    """Return the available languages, English first."""
    codes = sorted(path.parts[-3] for path in LOCALE_DIR.glob("*/LC_MESSAGES/pages.mo"))
    return ["en", *(name for name in codes if name != "en")]


def language() -> str:
    """Return the language of this session; outside one, that of ``speaking`` or the server."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return _CACHED.outside or DEFAULT
    if _CACHED.context is not context:
        _CACHED.context, _CACHED.spoken = context, str(st.session_state.get(_LANGUAGE, DEFAULT))
    return _CACHED.spoken


def speak(name: str) -> None:
    """Switch this session to another language, if it is available."""
    if name in languages():
        st.session_state[_LANGUAGE] = name
        _CACHED.context = None


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Translate into a language in this block, in a thread without a session."""
    before, _CACHED.outside = _CACHED.outside, name
    try:
        yield
    finally:
        _CACHED.outside = before


def follow_link() -> None:
    """Switch to the language that the link names, if any."""
    if "lang" in st.query_params:
        speak(st.query_params["lang"])


def _(text: str | BaseException | None, /, **values: object) -> str:
    """Return a text of the app in the session's language, with its values filled in.

    ``_("{n} heads", n=4)``. An error of the app gives its sentence, one of the operating system
    the sentence for its number, without a path; None gives "".
    """
    if isinstance(text, OSError) and not isinstance(text, StudentError):
        return _(refusal(text))
    if isinstance(text, BaseException):
        return _(text.sentence) if isinstance(text, StudentError) else str(text)
    if not text:
        return ""  # gettext would answer with the head of its catalogue
    if isinstance(text, Paragraph):
        return _filled(text.template_in(language()), text.values | values)
    catalogue = _catalogue(language(), LOCALE_DIR)
    if not isinstance(text, Sentence):
        return _filled(catalogue.gettext(text), values)
    if isinstance(text, CountedSentence):
        template = catalogue.ngettext(*text.forms, text.n)
    else:
        template = catalogue.gettext(text.template)
    return _filled(template, text.values | values)


def paragraph(key: str, /, **values: object) -> str:
    """Return a ``Paragraph`` of ``content/<language>/texts`` in the session's language."""
    return _(Paragraph(f"texts/{key}", folder=CONTENT_DIR, **values))


def ngettext(one: str, many: str, n: int, /, **values: object) -> str:
    """Return the singular or plural form for a number, in the session's language."""
    return _filled(_catalogue(language(), LOCALE_DIR).ngettext(one, many, n), values)


def content(name: str, spoken: str | None = None) -> str:
    """Return the Markdown of ``content/<language>/<name>.md``, in English where it is missing.

    spoken: the language; without it the session's.

    Raises FileNotFoundError when there is no English text of that name either.
    """
    path = CONTENT_DIR / (spoken or language()) / f"{name}.md"
    if not path.is_file():
        path = CONTENT_DIR / "en" / f"{name}.md"
    return path.read_text(encoding="utf-8")


class _Formatter(string.Formatter):
    """``str.format`` that translates sentences among the values and adds Korean particles."""

    def format_field(self, value: object, format_spec: str) -> str:
        """Format one value; ``{name:을}`` adds 을 or 를, whichever follows its last sound."""
        if isinstance(value, Sentence | StudentError):
            value = _(value)
        if format_spec in PARTICLES:
            return with_particle(str(value), format_spec)
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


def _filled(template: str, values: Mapping[str, object]) -> str:
    return _FORMATTER.vformat(template, (), values) if values else template


@lru_cache(maxsize=64)
def _catalogue(name: str, folder: Path) -> gettext.NullTranslations:
    return gettext.translation("pages", localedir=folder, languages=[name], fallback=True)
