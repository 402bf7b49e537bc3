"""Languages: what a person reads goes through ``_`` where it is drawn; long texts are Markdown.

A language is a catalogue ``locale/<language>/LC_MESSAGES/pages.mo`` and a folder beside each
``content/en``; what it lacks appears in English. ``docs/translating.md`` says how to add one.
Labels and short messages stand in the code, texts longer than a line in content files:
``paragraph("train/rate")`` here, ``Paragraph`` in the core.

Each session has its own language: that of its link (``?lang=``), else the one chosen in the frame,
which a cookie keeps, else the server's (``TFM_LANGUAGE``), else the browser's, else English. It is
looked up at every call, so a choice takes effect with the next draw.

Text outside a function, or anywhere in ``tfm_core``, is drawn later, perhaps in another language:
``N_`` marks it there, and ``_`` translates it where it is drawn. No ``_`` runs while a module is
imported. ``tests/translation.py`` collects the messages of both.
"""

from __future__ import annotations

import gettext
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path

import streamlit as st

from pages.server.streamlit_internals import get_script_run_ctx
from tfm_core.languages import catalogue, file_in, places
from tfm_core.runs.disk.failures import refusal
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.spoken import filled, translate

__all__ = [
    "N_",
    "PAGES_DIR",
    "_",
    "content",
    "elsewhere",
    "language",
    "languages",
    "names",
    "ngettext",
    "paragraph",
    "speak",
    "speaking",
]

PAGES_DIR = Path(__file__).resolve().parent
LOCALE_DIR = PAGES_DIR / "locale"
CONTENT_DIR = PAGES_DIR / "content"
ENGLISH = "en"
DEFAULT = os.environ.get("TFM_LANGUAGE") or ENGLISH
QUERY, COOKIE = "lang", "tfm_language"
"""What addresses and the browser's cookie call the language."""
_LANGUAGE, _UNKNOWN = "language", "unknown_language"


class _Cached(threading.local):
    """The language of the session that this thread draws; a page needs it some 600 times."""

    context: object = None
    spoken = DEFAULT
    outside: str | None = None


_CACHED = _Cached()


def languages() -> list[str]:
    """Return the available languages, English first."""
    return _languages(LOCALE_DIR)


@lru_cache(maxsize=8)
def _languages(folder: Path) -> list[str]:
    found = (place.glob("*/LC_MESSAGES/pages.mo") for place in places(folder))
    codes = {path.parts[-3] for path in chain.from_iterable(found)}
    return [ENGLISH, *sorted(codes - {ENGLISH})]


def names() -> dict[str, str]:
    """Return the name of each language in that language."""
    own = N_("the name of this language, in itself")
    return {
        code: "English" if code == ENGLISH else _catalogue(code, LOCALE_DIR).gettext(own)
        for code in languages()
    }


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
    if name in languages() and name != st.session_state.get(_LANGUAGE):
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
    """Switch to the language that the link names; a new session without one takes its first."""
    linked = st.query_params.get(QUERY)
    st.session_state[_UNKNOWN] = None if linked in languages() else linked
    if linked in languages() or _LANGUAGE not in st.session_state:
        speak(of_visitor(linked, st.context.cookies.get(COOKIE), st.context.locale))


def of_visitor(linked: str | None, kept: str | None, locale: str | None) -> str:
    """Return the language that a link, else a cookie, the server or the browser asks for."""
    chosen = (name for name in (linked, kept) if name in languages())
    return next(chosen, None) or _unasked(locale)


def unknown_in_link() -> str | None:
    """Return the language that the link names, if it is not there."""
    unknown: str | None = st.session_state.get(_UNKNOWN)
    return unknown


def in_link() -> str | None:
    """Return what links say of the language: nothing where everything is in English."""
    spoken = language()
    return None if spoken == _unasked(st.context.locale) == ENGLISH else spoken


def _unasked(locale: str | None) -> str:
    """Return the language of who has chosen none: the server's, else the browser's."""
    if DEFAULT != ENGLISH or "TFM_LANGUAGE" in os.environ:
        return DEFAULT
    browsers = (locale or "").replace("_", "-").lower()
    parts = browsers.split("-")
    tried = ("-".join(parts[:n]) for n in range(len(parts), 0, -1))
    known = {code.replace("_", "-").lower(): code for code in languages()}
    return next((known[name] for name in tried if name in known), ENGLISH)


def _(text: str | BaseException | None, /, **values: object) -> str:
    """Return a text of the app in the session's language, with its values filled in.

    ``_("{n} heads", n=4)``. An error of the app gives its sentence, one of the operating system
    the sentence for its number, without a path; None gives "".
    """
    if isinstance(text, OSError) and not isinstance(text, StudentError):
        return _(refusal(text))
    spoken = language()
    messages = _catalogue(spoken, LOCALE_DIR)
    return translate(text, values, language=spoken, catalogue=messages, say=_)


def elsewhere(text: str) -> str:
    """Return a text in the languages that the session does not speak, as words for a search."""
    found = {code: _catalogue(code, LOCALE_DIR).gettext(text) for code in languages()}
    return " ".join(words for code, words in found.items() if code != language())


def paragraph(key: str, /, **values: object) -> str:
    """Return a ``Paragraph`` of ``content/<language>/texts`` in the session's language."""
    return _(Paragraph(f"texts/{key}", folder=CONTENT_DIR, **values))


def ngettext(one: str, many: str, n: int, /, **values: object) -> str:
    """Return the singular or plural form for a number, in the session's language."""
    return filled(_catalogue(language(), LOCALE_DIR).ngettext(one, many, n), values, _)


def content(name: str, spoken: str | None = None) -> str:
    """Return the Markdown of ``content/<language>/<name>.md``, in English where it is missing.

    spoken: the language; without it the session's.

    Raises FileNotFoundError when there is no English text of that name either.
    """
    path = file_in(CONTENT_DIR, f"{spoken or language()}/{name}.md")
    return (path or CONTENT_DIR / "en" / f"{name}.md").read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def _catalogue(name: str, folder: Path) -> gettext.NullTranslations:
    return catalogue(folder, [name])
