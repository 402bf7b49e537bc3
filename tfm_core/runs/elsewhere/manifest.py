"""What a store says of a run: one small object, replaced whole, that everything else hangs on.

``index/<id>.json`` lists the run's files. A small file stands in it; a larger one is an object of
its own, ``files/<id>/<name>.<number>``, which is written before the manifest that names it and is
never written again, so nobody reads half of anything. A file that only grows, as the events do, is
a row of such objects and a tail, so that what is new costs one write, however long the run is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfm_core.reading import is_line, is_whole

INDEX, FILES, CALLS = "index", "files", "calls"

TAIL = 2**14
"""Bytes of a file that stand in the manifest itself; what grows gets an object for each so many."""

_MOST = 2**25  # bytes of a manifest
_MOST_FILE = 2**43
_STEP = r"\d{8,9}\.safetensors"
LARGE = re.compile(
    rf"(snapshots|weights)/{_STEP}|checkpoints/(last|best)/checkpoint\.safetensors"
    r"|vocabulary/[0-9a-f]{20}/(set|tokens)\.json",
    re.ASCII,
)
"""Files that are fetched for those who open the run."""

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
_OBJECT = re.compile(r"[a-z0-9.~]{1,80}\.[0-9a-f]{16}", re.ASCII)
_SERVER = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: objects with their sizes, one behind the other, and the tail behind them."""

    parts: tuple[tuple[str, int], ...] = ()
    tail: bytes = b""

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

    home: int
    server: str
    host: str
    is_deleted: bool = False
    files: Mapping[str, Entry] = field(default_factory=dict)

    def content(self) -> bytes:
        """Return the manifest as bytes."""
        values = {
            "home": self.home,
            "server": self.server,
            "host": self.host,
            "is_deleted": self.is_deleted,
            "files": {name: values_of(entry) for name, entry in self.files.items()},
        }
        return json.dumps(values).encode()


def read(content: bytes) -> Manifest | None:
    """Return what a manifest says; None where it is none, as while it is being written."""
    if len(content) > _MOST:
        return None
    try:
        values = json.loads(content)
        files = {str(name): entry_of(one) for name, one in values["files"].items()}
        made = Manifest(
            values["home"], values["server"], values["host"], bool(values["is_deleted"]), files
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    is_known = is_whole(made.home, 1, 10**6) and is_line(made.host, 255)
    is_known = is_known and isinstance(made.server, str) and bool(_SERVER.fullmatch(made.server))
    if not is_known or not all(name in SMALL or LARGE.fullmatch(name) for name in files):
        return None
    return made


def values_of(entry: Entry) -> dict[str, Any]:
    """Return an entry as plain values."""
    return {"parts": [list(part) for part in entry.parts], "tail": entry.tail.decode("latin-1")}


def entry_of(values: Any) -> Entry:
    """Return the entry of plain values. Raises ValueError, KeyError and TypeError."""
    parts = tuple((name, size) for name, size in values["parts"])
    for name, size in parts:
        if not (
            isinstance(name, str) and _OBJECT.fullmatch(name) and is_whole(size, 0, _MOST_FILE)
        ):
            raise ValueError(name)
    return Entry(parts, values["tail"].encode("latin-1"))
