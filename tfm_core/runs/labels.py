"""A run's name, tags, note and group, as a person chose them, and where an imported run comes from.

``labels.json`` in the run's folder is separate from the run itself: a run without it has its
original name and no other label. ``origin.json`` is there for imported runs only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tfm_core.data.user_data.sets import MAX_NAME as MAX_SET_NAME
from tfm_core.reading import Unreadable, is_line, object_of
from tfm_core.runs.disk.atomic import write_json
from tfm_core.sentences import StudentError
from tfm_core.stored import Device, Moment, Stored, checked, line, text

LABELS_FILE = "labels.json"
MAX_NAME, MAX_GROUP = 80, 80
MAX_TAG, MAX_TAGS = 30, 12
MAX_NOTE = 2_000
_MAX_LABELS = 2**16

Tags = Annotated[tuple[Annotated[str, line(MAX_TAG)], ...], Field(max_length=MAX_TAGS)]
Note = Annotated[str, text(MAX_NOTE)]
Group = Annotated[str, line(MAX_GROUP)]


@dataclass(frozen=True, slots=True)
class Labels:
    """name: None until somebody named the run. note: lines of text. group: None for none."""

    name: Annotated[str, line(MAX_NAME)] | None = None
    tags: Tags = ()
    note: Note = ""
    group: Group | None = None


def read_labels(folder: Path) -> tuple[Labels, str | None]:
    """Return the labels of a run, and what is damaged of them as a clause, or None. Never raises.

    What can be read of a damaged file is kept.
    """
    try:
        return _STORED_LABELS.salvage(object_of(folder / LABELS_FILE, most=_MAX_LABELS))
    except FileNotFoundError:
        return Labels(), None
    except Unreadable as error:
        return Labels(), error.sentence


def write_labels(folder: Path, labels: Labels) -> None:
    """Replace the labels of a run, whole or not at all. Raises OSError."""
    write_json(folder / LABELS_FILE, dataclasses.asdict(labels), lasting=True)


def clean_name(text: str) -> str:
    """Return a name in one line. Raises StudentError where nothing is left of it."""
    words = _in_a_line(text)
    if not words:
        raise StudentError("A run needs a name with at least one letter.")
    if len(words) > MAX_NAME:
        raise StudentError(
            "This name has {n_words} characters; the limit is {max_name}.",
            max_name=MAX_NAME,
            n_words=len(words),
        )
    return words


def clean_group(text: str | None) -> str | None:
    """Return the name of a group in one line, None for none. Raises StudentError."""
    words = _in_a_line(text or "")
    if len(words) > MAX_GROUP:
        raise StudentError(
            "This group name has {n} characters; the limit is {most}.", most=MAX_GROUP, n=len(words)
        )
    return words or None


def clean_tags(texts: Iterable[str]) -> tuple[str, ...]:
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
                "The tag “{tag}” has {n} characters; the limit is {most}.",
                most=MAX_TAG,
                tag=tag,
                n=len(tag),
            )
    if len(tags) > MAX_TAGS:
        raise StudentError(
            "You have entered {n} tags; the limit is {most}.", most=MAX_TAGS, n=len(tags)
        )
    return tuple(tags.values())


def clean_note(text: str) -> str:
    """Return a note, its lines as they are. Raises StudentError where it is too long."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    note = "\n".join(_printable(line).rstrip() for line in lines).strip()
    if len(note) > MAX_NOTE:
        raise StudentError(
            "This note has {n:,} characters; the limit is {most:,}.", most=MAX_NOTE, n=len(note)
        )
    return note


def _in_a_line(text: str) -> str:
    return " ".join(_printable(text).split())


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


_STORED_LABELS = Stored(Labels, LABELS_FILE)


ORIGIN_FILE = "origin.json"
_MAX_ORIGIN, _MAX_VERSIONS, _MAX_WORD = 2**14, 20, 80

Word = Annotated[str, line(_MAX_WORD)]
Versions = Annotated[dict[Word, Word], Field(max_length=_MAX_VERSIONS)]
DataName = Annotated[str, checked(lambda value: value == "" or is_line(value, MAX_SET_NAME))]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run was where it was trained; ``created`` and ``brought`` are ISO 8601, UTC.

    versions: of the app, Python and the packages that decide about numbers, by name. data: what
    the set of one's own is called that it learned from, "" where it learned from none.
    """

    id: Word
    created: Moment
    brought: Moment
    device: Device
    versions: Versions
    data: DataName = ""


def write_origin(folder: Path, origin: Origin) -> None:
    """Write it into a run's folder. Raises OSError."""
    write_json(folder / ORIGIN_FILE, dataclasses.asdict(origin), lasting=True)


def read_origin(folder: Path) -> Origin | None:
    """Return where a run comes from; None for one that began here, or that does not say it well."""
    try:
        return _STORED_ORIGIN.salvage(object_of(folder / ORIGIN_FILE, most=_MAX_ORIGIN))[0]
    except (FileNotFoundError, Unreadable):
        return None


_STORED_ORIGIN = Stored(Origin, ORIGIN_FILE)
