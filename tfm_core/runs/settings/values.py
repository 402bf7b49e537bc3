"""How the text of a ``TFM_`` variable becomes a value, or the sentence that says what is right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, ValidationInfo
from pydantic_settings import NoDecode

from tfm_core.reading import is_device
from tfm_core.sentences import StudentError

PREFIX = "TFM_"
BackendName = Literal["local", "ray", "slurm"]
"""Who trains the runs: processes of this machine, or jobs of a cluster."""

SHORTEST_KEY = 16
"""Characters that a host's key needs at least: it is guessed over the network."""

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


def whole(name: str, text: str) -> int:
    """Return a whole number from 0. Raises StudentError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise StudentError(
            "{name} is {text!r}; use a whole number, 0 for none.", name=name, text=_short(text)
        )
    return int(text)


def size(name: str, text: str) -> int:
    """Return bytes: 500MB, 20GB, 1.5TB, 20GiB, or a plain number of bytes. Raises StudentError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise StudentError(
            "{name} is {text!r}; use a size such as 500MB, 20GB or 1.5TB, 0 for none.",
            name=name,
            text=_short(text),
        )
    number, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** " KMGT".index((prefix or " ").upper()))


def switch(name: str, text: str) -> bool:
    """Return whether a switch is on. Raises StudentError."""
    if text not in {"0", "1"}:
        raise StudentError(
            "{name} is {text!r}; use 1 (on) or 0 (off).", name=name, text=_short(text)
        )
    return text == "1"


def key(name: str, text: str) -> str:
    """Return a key as it is. Raises StudentError, which doesn't repeat it, for one too short."""
    if len(text) < SHORTEST_KEY:
        raise StudentError(
            "{name} has {n} characters; use at least {least}.",
            name=name,
            n=len(text),
            least=SHORTEST_KEY,
        )
    return text


def people(name: str, text: str) -> tuple[str, ...]:
    """Return e-mail addresses and domains in lower case. Raises StudentError."""
    wrong = StudentError(
        "{name} is {text!r}; use email addresses or domains: ann@example.org @example.org.",
        name=name,
        text=_short(text),
    )
    return _each(text.lower().replace(",", " "), _PEOPLE, wrong)


def addresses(name: str, text: str) -> tuple[str, ...]:
    """Return e-mail addresses in lower case. Raises StudentError for a domain, too."""
    wrong = StudentError(
        "{name} is {text!r}; use email addresses such as ann@example.org.",
        name=name,
        text=_short(text),
    )
    return _each(text.lower().replace(",", " "), _PERSON, wrong)


def sources(name: str, text: str) -> str:
    """Return sources of a Content-Security-Policy, a space between them. Raises StudentError."""
    wrong = StudentError(
        "{name} is {text!r}; use 'none', 'self', https://example.org, or * for all.",
        name=name,
        text=_short(text),
    )
    return " ".join(_each(text, _SOURCE, wrong))


def hosts(name: str, text: str) -> tuple[str, ...]:
    """Return names of hosts, in small letters. Raises StudentError."""
    wrong = StudentError(
        "{name} is {text!r}; use host names such as *.example.org, or * for all.",
        name=name,
        text=_short(text),
    )
    return _each(text.lower().replace(",", " "), _HOST, wrong)


def backend(name: str, text: str) -> str:
    """Return the name of a back end. Raises StudentError."""
    if text not in (names := get_args(BackendName)):
        raise StudentError(
            "{name} is {text!r}; use one of {names}.",
            name=name,
            text=_short(text),
            names=", ".join(names),
        )
    return text


def address(name: str, text: str) -> str:
    """Return the address of a server. Raises StudentError."""
    if _ADDRESS.fullmatch(text) is None:
        raise StudentError(
            "{name} is {text!r}; use an address such as http://HOST:8265.",
            name=name,
            text=_short(text),
        )
    return text.rstrip("/")


def options(name: str, text: str) -> tuple[str, ...]:
    """Return the options of a command, each in its long form. Raises StudentError."""
    words = command(name, text)
    wrong = next((word for word in words if not _OPTION.fullmatch(word)), None)
    if wrong is not None:
        raise StudentError(
            "{name} has {wrong!r}; use options such as --partition=gpu --time=4:00:00.",
            name=name,
            wrong=_short(wrong),
        )
    return words


def command(name: str, text: str) -> tuple[str, ...]:
    """Return the words of a command, as a shell takes them apart. Raises StudentError."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        raise StudentError(
            "{name} is {text!r}; use shell words with every quote closed.",
            name=name,
            text=_short(text),
        ) from None


def store_address(name: str, text: str) -> str:
    """Return an address of fsspec as it is. Raises StudentError."""
    protocol, _, place = text.partition("://")
    if not (_PROTOCOL.fullmatch(protocol) and place.strip("/")):
        raise StudentError(
            "{name} is {text!r}; use an address such as s3://bucket/runs or file:///mnt/shared/runs.",
            name=name,
            text=_short(text.rpartition("@")[2]),  # without a password
        )
    return text.rstrip("/")


def device(name: str, text: str) -> str:
    """Return the name of a device, which need not be there. Raises StudentError."""
    if not is_device(text):
        raise StudentError(
            "{name} is {text!r}; use a device such as cuda:0, mps or cpu.",
            name=name,
            text=_short(text),
        )
    return text


def _each(text: str, pattern: re.Pattern[str], wrong: StudentError) -> tuple[str, ...]:
    """Return the words of a text. Raises what is given for one that the pattern does not match."""
    words = tuple(text.split())
    if not all(pattern.fullmatch(word) for word in words):
        raise wrong
    return words


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _as(read: Callable[[str, str], object]) -> BeforeValidator:
    """Return a validator that reads the text of a variable, and takes any other value as it is."""

    def parse(value: object, info: ValidationInfo) -> object:
        if not isinstance(value, str):
            return value
        return read(f"{PREFIX}{str(info.field_name).upper()}", value)

    return BeforeValidator(parse)


_Words = Annotated[tuple[str, ...], NoDecode]
Whole = Annotated[int, _as(whole)]
Size = Annotated[int, _as(size)]
Switch = Annotated[bool, _as(switch)]
Key = Annotated[str, _as(key)]
People = Annotated[_Words, _as(people)]
Addresses = Annotated[_Words, _as(addresses)]
Sources = Annotated[str, _as(sources)]
Hosts = Annotated[_Words, _as(hosts)]
Backend = Annotated[BackendName, _as(backend)]
Address = Annotated[str, _as(address)]
Options = Annotated[_Words, _as(options)]
Command = Annotated[_Words, _as(command)]
StoreAddress = Annotated[str, _as(store_address)]
Device = Annotated[str, _as(device)]
