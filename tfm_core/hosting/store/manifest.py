"""The manifest of a run in a store: one small object that names all others, replaced whole.

``index/<id>.json`` lists the run's files and contains the small ones. A larger one is an object,
``files/<id>/<name>.<number>``, written once, before the manifest that names it, so nobody reads a
partial file. A growing file, such as the events, is a row of objects and a tail in the manifest, so
that an update costs one write, however long the run is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, StrictBool

from tfm_core.stored import Stored, WrongValue, checked, line, matching, whole

INDEX, FILES, CALLS = "index", "files", "calls"

TAIL = 2**14
"""Bytes of a file that the manifest contains; a growing file gets an object for each so many."""

_MAX = 2**25  # bytes of a manifest
_MAX_FILE = 2**43
_STEP = r"\d{8,9}\.safetensors"
LARGE = re.compile(
    rf"(snapshots|weights)/{_STEP}|checkpoints/(last|best)/checkpoint\.safetensors"
    r"|vocabulary/[0-9a-f]{20}/(set|tokens)\.json",
    re.ASCII,
)
"""Files that are fetched when somebody opens the run."""

SMALL = (
    "status.json",  # first: what is read after it is no older than what it says
    "meta.json",
    "labels.json",
    "experiment.json",
    "origin.json",
    "best.json",
    "probe.json",
    "probe.safetensors",
    "worker.log",
    "events.jsonl",
)
"""Files that every server has of every run, in the order in which they are read."""

GROWING = {"events.jsonl", "worker.log"}


def _bytes(value: object) -> bytes:
    """Return the bytes of a tail as JSON has it. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("no text")
    return value.encode("latin-1")


_Object = Annotated[str, matching(re.compile(r"[a-z0-9.~]{1,80}\.[0-9a-f]{16}", re.ASCII))]
_Size = Annotated[int, whole(0, _MAX_FILE)]
_Tail = Annotated[
    bytes, PlainValidator(_bytes), PlainSerializer(lambda tail: tail.decode("latin-1"))
]
_Name = Annotated[str, checked(lambda name: name in SMALL or LARGE.fullmatch(name) is not None)]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: consecutive objects with their sizes, then the tail."""

    parts: tuple[tuple[_Object, _Size], ...] = ()
    tail: _Tail = b""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return sum(size for _name, size in self.parts) + len(self.tail)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A run as a store has it.

    home: counts how often the run changed servers. server, host: the one that has it now, and its
    machine. is_deleted: it lies in that server's trash.
    """

    home: Annotated[int, whole(1, 10**6)]
    server: Annotated[str, matching(re.compile(r"[0-9a-f]{16}"))]
    host: Annotated[str, line(255)]
    is_deleted: StrictBool = False
    files: dict[_Name, Entry] = field(default_factory=dict)

    def content(self) -> bytes:
        """Return the manifest as bytes."""
        return json.dumps(_STORED.plain(self)).encode()


_STORED = Stored(Manifest, "the manifest")


def read(content: bytes) -> Manifest | None:
    """Return a manifest, or None if it is invalid, as while it is being written."""
    if len(content) > _MAX:
        return None
    try:
        return _STORED.read(json.loads(content))
    except (ValueError, RecursionError, WrongValue):
        return None
