"""The folder of a published run: the names of its files, and how they are written.

``index.html``, a script and a style sheet are the page. Pages poll ``run.json``: the run's step,
the length of its log, and the names of all other files. The log only grows and is read from where a
page stopped. All other files never change: new content has a new name. So no reader sees a partial
file: files are written whole, the log gets whole lines, and ``run.json`` names both only once they
exist.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from tfm_core.disk import BINARY
from tfm_core.runs.disk.atomic import write_bytes

FORM = 1
"""The version of the files; a page of another version reloads itself."""
EVERY = 2.0
"""Seconds after which a page asks again, unless very many do."""
LINGER = 60.0
"""Seconds that an unnamed file stays: a slow page may still request it."""
STATE = "run.json"
PAGE = "index.html"

_TAG = r"[0-9a-f]{12}"
_CHANGING = re.compile(rf"{re.escape(STATE)}|{re.escape(PAGE)}|log-{_TAG}\.jsonl")
_LASTING = re.compile(
    rf"(live|gallery)-{_TAG}\.(js|css)(\.gz)?|(look|now)-{_TAG}-[a-zA-Z_]{{2,12}}\.json"
    rf"|(\d{{8,9}}|reel)-{_TAG}-\d{{1,3}}-\d{{1,5}}\.bin"
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/jsonl; charset=utf-8",
    ".bin": "application/octet-stream",
    ".gz": "application/gzip",
}


def is_served(name: str) -> bool:
    """Return whether a file of this name is for everybody."""
    return bool(_CHANGING.fullmatch(name) or _LASTING.fullmatch(name))


def is_lasting(name: str) -> bool:
    """Return whether a file of this name never changes."""
    return _LASTING.fullmatch(name) is not None


def media_type(name: str) -> str:
    """Return the media type of a file."""
    return _TYPES[Path(name).suffix]


def tag(*contents: bytes) -> str:
    """Return what names contents: the beginning of their SHA-256."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:12]


class Folder:
    """A folder that one process keeps up to date. Its methods raise OSError."""

    def __init__(self, path: Path, *, linger: float = LINGER) -> None:
        """Begin a new log in a folder, which is made if need be; all else that lies there stays."""
        self.path, self._linger = path, linger
        self._dropped: dict[str, float] = {}
        path.mkdir(parents=True, exist_ok=True)
        self.log = f"log-{secrets.token_hex(6)}.jsonl"
        self.log_bytes = 0
        self._said: bytes | None = None
        self._second = 0

    def has(self, name: str) -> bool:
        """Return whether a file that never changes is there."""
        return (self.path / name).is_file()

    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole; one that is there and never changes is left as it is."""
        if not (is_lasting(name) and self.has(name)):
            write_bytes(self.path / name, content)

    def append(self, lines: Iterable[list[Any]]) -> None:
        """Write whole lines behind the log. What was written in part is taken back."""
        content = b"".join(
            json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"
            for line in lines
        )
        file = os.open(self.path / self.log, os.O_CREAT | os.O_WRONLY | BINARY, 0o644)
        try:
            os.ftruncate(file, self.log_bytes)
            os.lseek(file, 0, os.SEEK_END)
            left = memoryview(content)
            while left:
                left = left[os.write(file, left) :]
        finally:
            os.close(file)
        self.log_bytes += len(content)

    def say(self, values: Mapping[str, Any]) -> bool:
        """Write ``run.json`` where it says something else than before; return whether it did.

        The log's name and length are said by the folder itself. Each time the file gets a second
        of its own: some servers know files apart by that alone.
        """
        log = {"name": self.log, "bytes": self.log_bytes}
        content = json.dumps({"form": FORM, **values, "log": log}, ensure_ascii=False).encode()
        if content == self._said:
            return False
        path = self.path / STATE
        write_bytes(path, content)
        seconds = max(int(path.stat().st_mtime), self._second + 1)
        os.utime(path, (seconds, seconds))
        self._said, self._second = content, seconds
        return True

    def tidy(self, keep: Collection[str]) -> None:
        """Remove served files that were not in ``keep`` for a while. Never raises."""
        kept, now = {STATE, PAGE, self.log, *keep}, time.monotonic()
        with contextlib.suppress(OSError):
            gone = [name for name in os.listdir(self.path) if is_served(name) and name not in kept]
            self._dropped = {name: self._dropped.get(name, now) for name in gone}
        for name, since in self._dropped.items():
            if now - since >= self._linger:
                with contextlib.suppress(OSError):
                    os.unlink(self.path / name)
