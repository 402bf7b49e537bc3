"""What a person calls a run: its name, its tags, a note and the group it belongs to.

They stand in ``labels.json`` in the run's folder, apart from what the run itself is. A run without
that file has the name that it was begun with, and nothing else; so have the folders of older
releases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tfm_core.reading import Unreadable, is_line, is_text, object_of
from tfm_core.runs.atomic import write_json
from tfm_core.sentences import N_, StudentError

FILE = "labels.json"
MAX_NAME, MAX_GROUP = 80, 80
MAX_TAG, MAX_TAGS = 30, 12
MAX_NOTE = 2_000
_MOST_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Labels:
    """name: None until somebody named the run. note: lines of text. group: None for none."""

    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    group: str | None = None


def read(folder: Path) -> tuple[Labels, str | None]:
    """Return the labels of a run, and what is damaged of them as a clause, or None. Never raises.

    What can be read of a damaged file is kept.
    """
    try:
        values = object_of(folder / FILE, most=_MOST_BYTES)
    except FileNotFoundError:
        return Labels(), None
    except Unreadable as error:
        return Labels(), error.sentence
    known = {name: values[name] for name, fits in _CHECKS.items() if fits(values.get(name))}
    wrong = next((name for name in _CHECKS if name in values and name not in known), None)
    labels = dataclasses.replace(Labels(), **{**known, "tags": tuple(known.get("tags", ()))})
    if wrong is None:
        return labels, None
    return labels, N_("{file} has a value of “{name}” that cannot be", file=FILE, name=wrong)


def write(folder: Path, labels: Labels) -> None:
    """Replace the labels of a run, whole or not at all. Raises OSError."""
    write_json(folder / FILE, dataclasses.asdict(labels), lasting=True)


def fits(name: str, value: object) -> bool:
    """Say whether a value may be a run's label of this name: "tags", "note" or "group"."""
    return _CHECKS[name](value)


def a_name(text: str) -> str:
    """Return a name in one line. Raises StudentError where nothing is left of it."""
    words = _in_a_line(text)
    if not words:
        raise StudentError("A run needs a name; give it at least one letter.")
    if len(words) > MAX_NAME:
        raise StudentError(
            "A name has at most {max_name} characters; this one has {n_words}.",
            max_name=MAX_NAME,
            n_words=len(words),
        )
    return words


def a_group(text: str | None) -> str | None:
    """Return the name of a group in one line, None for none. Raises StudentError."""
    words = _in_a_line(text or "")
    if len(words) > MAX_GROUP:
        raise StudentError(
            "The name of a group has at most {most} characters; this one has {n}.",
            most=MAX_GROUP,
            n=len(words),
        )
    return words or None


def some_tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Return tags, each once and in one line, as they stand. Raises StudentError.

    Tags that differ in capitals alone are one; a comma parts two.
    """
    parts = (_in_a_line(part) for text in texts for part in text.split(","))
    tags: dict[str, str] = {}
    for tag in filter(None, parts):
        tags.setdefault(tag.casefold(), tag)
    for tag in tags.values():
        if len(tag) > MAX_TAG:
            raise StudentError(
                "A tag has at most {most} characters; “{tag}” has {n}. Longer words fit in the "
                "note.",
                most=MAX_TAG,
                tag=tag,
                n=len(tag),
            )
    if len(tags) > MAX_TAGS:
        raise StudentError(
            "A run has at most {most} tags; these are {n}.", most=MAX_TAGS, n=len(tags)
        )
    return tuple(tags.values())


def a_note(text: str) -> str:
    """Return a note, its lines as they are. Raises StudentError where it is too long."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    note = "\n".join(_printable(line).rstrip() for line in lines).strip()
    if len(note) > MAX_NOTE:
        raise StudentError(
            "A note has at most {most:,} characters; this one has {n:,}.",
            most=MAX_NOTE,
            n=len(note),
        )
    return note


def _in_a_line(text: str) -> str:
    return " ".join(_printable(text).split())


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _is_tags(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_TAGS
        and all(is_line(tag, MAX_TAG) for tag in value)
    )


_CHECKS: dict[str, Callable[[object], bool]] = {
    "name": lambda value: value is None or is_line(value, MAX_NAME),
    "tags": _is_tags,
    "note": lambda value: is_text(value, MAX_NOTE),
    "group": lambda value: value is None or is_line(value, MAX_GROUP),
}
