"""The sizes that a text gives, under the names of notebooks and libraries. Nothing is run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfm_core.sentences import N_, StudentError

MAX_CHARACTERS = 10_000

_KNOWN: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_BY_THEIRS = {name: ours for ours, names in _KNOWN["theirs"].items() for name in names}


Unread = tuple[int, str, str]
"""A line that was not understood, from 1, its text, and why."""


@dataclass(slots=True)
class Given:
    """What a text says.

    sizes: by our names of settings; names: all that it assigns, by its own; call: the class that it
    calls, or "".
    """

    sizes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    call: str = ""
    n_lines: int = 0
    unread: list[Unread] = field(default_factory=list)


_CALL = re.compile(
    r"(?:\w{1,40}\s*=\s*)?(?:torch\.)?(?P<name>(?:nn\.)?[A-Za-z_]\w{0,80})\((?P<inside>[^()]*)\)$"
)
_PAIR = re.compile(
    r"[\"']?([A-Za-z_][\w.]*)[\"']?\s*[:=]\s*([\"']?)([^\s,;|{}()]+(?:\s*//\s*\w+)?)\2"
)
_DEFAULTS = re.compile(r"def __init__\(\s*self\s*,?(.*)\)\s*(?:->.*)?:?$")
_ANNOTATION = re.compile(r":\s*[\w.\[\]| ]+?\s*(?=[=,]|$)")
_CODE = re.compile(r"(class|def|return|import|from|for|if|while|with|super|self|print|@)\b|@")
CODE = N_(
    "This is code. Write a call of its class, such as Encoder(3, 16, 4, 2), or open the module "
    "itself: tfm_core.look(model, …).open()."
)


def read(text: str) -> Given:
    """Return what a text says. Raises StudentError for one that is too long."""
    if len(text) > MAX_CHARACTERS:
        raise StudentError(
            "The text has {n:,} characters; the limit is {most:,}.",
            n=len(text),
            most=MAX_CHARACTERS,
        )
    given = Given()
    for number, line in _statements(text):
        given.n_lines += 1
        why = _take(line, given)
        if why:
            given.unread.append((number, line[:80], why))
    return given


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, those of an open bracket as one, without comments."""
    first, statement = 1, ""
    for number, line in enumerate(text.splitlines(), 1):
        first = number if not statement else first
        statement = f"{statement} {line.partition('#')[0].strip()}".strip().rstrip(";")
        if statement and statement.count("(") <= statement.count(")"):
            yield first, statement
            statement = ""
    if statement:
        yield first, statement


def _take(line: str, given: Given) -> str:
    """Take in a line; return why it was not understood, or ""."""
    if line.strip("{}, ") == "":  # the brackets of a config.json
        return ""
    if (defaults := _DEFAULTS.match(line)) is not None:
        return _take_pairs(_ANNOTATION.sub("", defaults[1]), given)
    if _CODE.match(line) is not None:
        return CODE
    call = _CALL.match(line)
    if call is not None:
        return _take_call(call["name"], call["inside"], given)
    return _take_pairs(line, given)


def _take_call(name: str, inside: str, given: Given) -> str:
    """Take in a call such as ``Encoder(3, 16, 4, 2)``."""
    plain = [one.strip() for one in inside.split(",") if one.strip() and "=" not in one]
    names: Sequence[str] = _KNOWN["calls"].get(name, ())
    by_name = [one for one in plain if _canonical(one)]  # of a size that is set above
    if len(plain) == len(by_name) > len(names):
        plain = []
    if len(plain) > len(names):
        if not names:
            return N_("Name the numbers of “{layer}”: d_model = …", layer=name[:40])
        return N_("“{layer}” takes at most {n} numbers without a name.", layer=name, n=len(names))
    given.call = given.call or name
    for size, value in zip(names, plain, strict=False):
        given.sizes[size] = _value(value, given)
    return _take_pairs(inside, given) if "=" in inside else ""


def _take_pairs(line: str, given: Given) -> str:
    found = _PAIR.findall(line)
    if _canonical(line.partition("=")[0].strip()) == "":
        return ""  # such as the shape of a picture, whatever it is
    if not found or "(" in line:
        return N_("This is neither a size nor a call with sizes.")
    unknown = []
    for name, _quote, value in found:
        ours = _canonical(name)
        given.names[name] = _value(value, given)
        if ours is None:
            unknown.append(name)
        elif ours:
            given.sizes[ours] = _value(value, given)
    if unknown:
        return N_("Unknown: {names}.", names=", ".join(one[:30] for one in unknown[:5]))
    return ""


def _canonical(name: str) -> str | None:
    """Return our name of a size; "" for what no model is made of, None for an unknown name."""
    name = name.rpartition(".")[2]
    if name in _KNOWN["exact"]:
        return name
    short = re.sub(r"[\W_]", "", name.lower())
    return "" if short in _KNOWN["skipped"] else _BY_THEIRS.get(short)


def _value(text: str, given: Given) -> str:
    """Return a value as our settings read it: no quotes, no ``_`` in numbers, no names, no //."""
    text = text.strip().strip("\"'")[:60]
    if re.fullmatch(r"\d[\d_]*", text):
        return text.replace("_", "")
    if "//" in text:
        whole, part = (_value(one, given) for one in text.split("//", 1))
        if whole.isdecimal() and part.isdecimal() and int(part):
            return str(int(whole) // int(part))
    return given.names.get(text, given.sizes.get(_canonical(text) or "", text))
