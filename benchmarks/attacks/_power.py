"""A small model of a disk that loses, when the power goes, what it was not told to keep.

A file's content survives as it was at its last ``fsync``. A folder's names survive as they were at
the folder's last ``fsync``. What was not asked for may survive or not, each part by itself: so a
name may be there whose content isn't.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.attacks._writes import Call


@dataclass(eq=False, slots=True)
class _File:
    """The content as written, and as it was at the last fsync."""

    written: bytes = b""
    kept: bytes = b""


@dataclass(eq=False, slots=True)
class _Folder:
    """The names in a folder now, and as they were at its last fsync."""

    names: dict[str, _File | _Folder] = field(default_factory=dict)
    kept: dict[str, _File | _Folder] = field(default_factory=dict)


Kept = dict[str, bytes | None]
"""What is on a disk: content by path, None for a folder."""


class Disk:
    """What a folder holds, call by call, and what is left of it when the power goes."""

    def __init__(self, root: Path) -> None:
        """Begin with all that is in a folder now, which is on the disk."""
        self.root = root.resolve()
        self._top = _read(self.root)

    def take(self, call: Call) -> None:
        """Follow a call that was made."""
        parts = self._parts(call.path)
        folder, name = self._folder(parts[:-1]), parts[-1] if parts else ""
        if call.name == "fsync":
            self._sync(parts)
        elif call.name == "mkdir":
            folder.names[name] = _Folder()
        elif call.name == "open":
            folder.names[name] = _File()
        elif call.name == "write":
            file = folder.names.get(name)
            if isinstance(file, _File):  # else it is written on after it lost its name
                file.written += call.data
        elif call.name == "truncate":
            file = folder.names[name]
            assert isinstance(file, _File)
            file.written = b""
        elif call.name in {"unlink", "remove", "rmdir"}:
            folder.names.pop(name, None)
        else:
            target = self._parts(call.target)
            moved = folder.names[name] if call.name == "link" else folder.names.pop(name)
            self._folder(target[:-1]).names[target[-1]] = moved

    def left(self, *, names: bool, content: bool) -> Kept:
        """Return what a power cut leaves where all that was not synced is lost ...

        ... but names, or content, where these are said to have come to the disk by themselves.
        """
        found: Kept = {}

        def walk(folder: _Folder, above: str) -> None:
            for name, thing in (folder.names if names else folder.kept).items():
                path = f"{above}{name}"
                if isinstance(thing, _Folder):
                    found[path] = None
                    walk(thing, f"{path}/")
                else:
                    found[path] = thing.written if content else thing.kept

        walk(self._top, "")
        return found

    def _parts(self, path: str) -> list[str]:
        relative = os.path.relpath(path, self.root)
        return [] if relative == "." else relative.split(os.sep)

    def _folder(self, parts: list[str]) -> _Folder:
        here = self._top
        for part in parts:
            below = here.names[part]
            assert isinstance(below, _Folder)
            here = below
        return here

    def _sync(self, parts: list[str]) -> None:
        thing: Any = self._folder(parts[:-1]).names.get(parts[-1]) if parts else self._top
        if isinstance(thing, _Folder):
            thing.kept = dict(thing.names)
        elif thing is not None:
            thing.kept = thing.written


def lay_out(kept: Kept, root: Path) -> None:
    """Write what a power cut has left into a new folder."""
    root.mkdir(parents=True)
    for path, content in kept.items():
        if content is None:
            (root / path).mkdir(parents=True, exist_ok=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)


def _read(folder: Path) -> _Folder:
    found: dict[str, _File | _Folder] = {}
    for path in folder.iterdir():
        if path.is_dir():
            found[path.name] = _read(path)
        else:
            found[path.name] = _File(path.read_bytes(), path.read_bytes())
    return _Folder(found, dict(found))
