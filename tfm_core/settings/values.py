"""How the text of a ``TFM_`` variable becomes a value, or the sentence that says what to use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo
from pydantic_settings import NoDecode

from tfm_core.sentences import N_, StudentError

PREFIX = "TFM_"

_ADDRESS = re.compile(r"https?://[a-z0-9_.-]+(:\d{1,5})?(/[\w./-]*)?", re.IGNORECASE | re.ASCII)

_SOURCE = re.compile(
    r"\*|'self'|'none'|https?:|https?://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:(\d{1,5}|\*))?",
    re.IGNORECASE | re.ASCII,
)
_HOST = re.compile(r"\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?(?:([kmgt])(i)?)?b?", re.IGNORECASE | re.ASCII)


def size(text: str) -> int:
    """Return bytes: 500MB, 20GB, 1.5TB, 20GiB, or a plain number of bytes. Raises ValueError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError
    number, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** " KMGT".index((prefix or " ").upper()))


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError
    return int(text)


def _matching(is_valid: Callable[[str], object]) -> Callable[[str], str]:
    """Return a reader that takes a text as it is. It raises ValueError for an invalid one."""

    def read(text: str) -> str:
        if not is_valid(text):
            raise ValueError
        return text

    return read


def _words(pattern: re.Pattern[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of words, with spaces or commas between them, in lower case."""

    def read(text: str) -> tuple[str, ...]:
        words = tuple(text.lower().replace(",", " ").split())
        if not all(pattern.fullmatch(word) for word in words):
            raise ValueError
        return words

    return read


def _sources(text: str) -> str:
    """Return sources of a Content-Security-Policy, with one space between them."""
    words = text.split()
    if not all(_SOURCE.fullmatch(word) for word in words):
        raise ValueError
    return " ".join(words)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _as(read: Callable[[str], object], wrong: str) -> BeforeValidator:
    """Return a validator that reads the text of a variable, and takes any other value as it is.

    wrong: the template of the sentence for a text that ``read`` refuses with ValueError.
    """

    def parse(value: object, info: ValidationInfo) -> object:
        if not isinstance(value, str):
            return value
        try:
            return read(value)
        except StudentError:
            raise
        except ValueError:
            name = f"{PREFIX}{str(info.field_name).upper()}"
            raise StudentError(wrong, name=name, text=_short(value)) from None

    return BeforeValidator(parse)


_Words = Annotated[tuple[str, ...], NoDecode]
Whole = Annotated[int, _as(_whole, N_("{name} is {text!r}; use a whole number, 0 for none."))]
Size = Annotated[
    int,
    _as(size, N_("{name} is {text!r}; use a size such as 500MB, 20GB or 1.5TB, 0 for none.")),
]
Switch = Annotated[
    bool,
    _as(
        lambda text: _matching({"0", "1"}.__contains__)(text) == "1",
        N_("{name} is {text!r}; use 1 (on) or 0 (off)."),
    ),
]
Sources = Annotated[
    str,
    _as(_sources, N_("{name} is {text!r}; use 'none', 'self', https://example.org, or * for all.")),
]
Hosts = Annotated[
    _Words,
    _as(
        _words(_HOST), N_("{name} is {text!r}; use host names such as *.example.org, or * for all.")
    ),
]
Address = Annotated[
    str,
    _as(
        lambda text: _matching(_ADDRESS.fullmatch)(text).rstrip("/"),
        N_("{name} is {text!r}; use an address such as http://HOST:8265."),
    ),
]
