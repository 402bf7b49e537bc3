"""How the text of a ``TFM_`` variable becomes a value, or the sentence that says what to use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, ValidationInfo
from pydantic_settings import NoDecode

from tfm_core.reading import is_device
from tfm_core.sentences import N_, StudentError

PREFIX = "TFM_"
BackendName = Literal["local", "ray", "slurm"]
"""What trains the runs: processes of this machine, or jobs of a cluster."""

SHORTEST_KEY = 16
"""Characters of a host's key, at least: it can be guessed over the network."""

_ADDRESS = re.compile(r"https?://[a-z0-9_.-]+(:\d{1,5})?(/[\w./-]*)?", re.IGNORECASE | re.ASCII)
_OPTION = re.compile(r"--[a-z][a-z0-9-]*(=.+)?", re.ASCII)

_SOURCE = re.compile(
    r"\*|'self'|'none'|https?:|https?://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:(\d{1,5}|\*))?",
    re.IGNORECASE | re.ASCII,
)
_PERSON = re.compile(r"[^\s@<>]+@[a-z0-9-]+(\.[a-z0-9-]+)*")
_PEOPLE = re.compile(rf"{_PERSON.pattern}|@[a-z0-9-]+(\.[a-z0-9-]+)*")
_HOST = re.compile(r"\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_PROTOCOL = re.compile(r"[a-z][a-z0-9+-]*", re.ASCII)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?(?:([kmgt])(i)?)?b?", re.IGNORECASE | re.ASCII)
_STORE = N_(
    "{name} is {text!r}; use an address such as s3://bucket/runs or file:///mnt/shared/runs."
)


def size(text: str) -> int:
    """Return bytes: 500MB, 20GB, 1.5TB, 20GiB, or a plain number of bytes. Raises ValueError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError
    number, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** " KMGT".index((prefix or " ").upper()))


def _key(text: object, info: ValidationInfo) -> object:
    if isinstance(text, str) and len(text) < SHORTEST_KEY:  # the sentence does not repeat it
        raise StudentError(
            "{name} has {n} characters; use at least {least}.",
            name=f"{PREFIX}{str(info.field_name).upper()}",
            n=len(text),
            least=SHORTEST_KEY,
        )
    return text


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


def _store_address(text: str) -> str:
    protocol, _, place = text.partition("://")
    if not (_PROTOCOL.fullmatch(protocol) and place.strip("/")):
        # without a password
        raise StudentError(_STORE, name="TFM_RUNS_URL", text=_short(text.rpartition("@")[2]))
    return text.rstrip("/")


def _command(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


def _options(text: str) -> tuple[str, ...]:
    """Return the options of a command, each in its long form."""
    words = _command(text)
    for word in words:
        if not _OPTION.fullmatch(word):
            raise StudentError(
                "{name} has {wrong!r}; use options such as --partition=gpu --time=4:00:00.",
                name="TFM_SLURM_OPTIONS",
                wrong=_short(word),
            )
    return words


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
Key = Annotated[str, BeforeValidator(_key)]
People = Annotated[
    _Words,
    _as(
        _words(_PEOPLE),
        N_("{name} is {text!r}; use email addresses or domains: ann@example.org @example.org."),
    ),
]
Addresses = Annotated[
    _Words,
    _as(_words(_PERSON), N_("{name} is {text!r}; use email addresses such as ann@example.org.")),
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
Backend = Annotated[
    BackendName,
    _as(
        _matching(get_args(BackendName).__contains__),
        N_("{name} is {text!r}; use local, ray or slurm."),
    ),
]
Address = Annotated[
    str,
    _as(
        lambda text: _matching(_ADDRESS.fullmatch)(text).rstrip("/"),
        N_("{name} is {text!r}; use an address such as http://HOST:8265."),
    ),
]
_QUOTES = N_("{name} is {text!r}; use shell words with every quote closed.")
Options = Annotated[_Words, _as(_options, _QUOTES)]
Command = Annotated[_Words, _as(_command, _QUOTES)]
StoreAddress = Annotated[str, _as(_store_address, _STORE)]
Device = Annotated[
    str,
    _as(_matching(is_device), N_("{name} is {text!r}; use a device such as cuda:0, mps or cpu.")),
]
