"""Every call by which this process changes files below a folder, seen as it is made.

``watched`` replaces the functions of ``os``, and the writer of checkpoints, while it is in force. A
watcher gets each call with its two ends: ``do`` makes it, ``half`` makes half of it where it can be
halved. It may record, refuse, or be the last thing that the process does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.torch import save

from tfm_core.training import checkpoints


@dataclass(frozen=True, slots=True)
class Call:
    """One call that changes something: its name, the file, and the new name."""

    name: str
    path: str
    target: str = ""
    data: bytes = b""


Watcher = Callable[[Call, Callable[[], Any], Callable[[], Any]], Any]
"""Gets a call, what makes it, and what makes half of it; returns what the call returns."""

_PATHS = ("unlink", "remove", "mkdir", "rmdir", "truncate")
_MOVES = ("replace", "rename", "link")


_REAL = {name: getattr(os, name) for name in (*_PATHS, *_MOVES, "open", "write", "fsync")}
_REAL_SAVE = checkpoints.save_file
_REAL_BYTES, _REAL_TEXT = Path.write_bytes, Path.write_text


@contextlib.contextmanager
def watched(root: Path, watcher: Watcher) -> Iterator[None]:
    """Show a watcher every call that changes something below a folder."""
    calls = _Calls(root, watcher)
    try:
        for name in (*_PATHS, *_MOVES):
            setattr(os, name, partial(calls.change, name))
        os.open, os.write, os.fsync = calls.open, calls.write, calls.fsync
        checkpoints.save_file = calls.save_file  # type: ignore[assignment]
        # functions, not bound methods: they get the path itself first
        Path.write_bytes = lambda path, content: calls.write_bytes(path, content)  # type: ignore
        Path.write_text = lambda path, *rest, **more: calls.write_text(path, *rest, **more)  # type: ignore
        yield
    finally:
        for name, function in _REAL.items():
            setattr(os, name, function)
        checkpoints.save_file = _REAL_SAVE
        Path.write_bytes, Path.write_text = _REAL_BYTES, _REAL_TEXT  # type: ignore[method-assign]


class _Calls:
    """The functions that replace the real ones; each calls the watcher."""

    def __init__(self, root: Path, watcher: Watcher) -> None:
        self._top, self._watcher = f"{root.resolve()}{os.sep}", watcher

    def _is_ours(self, path: object) -> bool:
        is_path = isinstance(path, str | Path)
        return is_path and f"{os.path.abspath(str(path))}{os.sep}".startswith(self._top)

    def change(self, name: str, path: Any, *rest: Any, **more: Any) -> Any:
        do = partial(_REAL[name], path, *rest, **more)
        if not self._is_ours(path):
            return do()
        target = os.path.abspath(rest[0]) if name in _MOVES else ""
        return self._watcher(Call(name, os.path.abspath(path), target), do, _nothing)

    def open(self, path: Any, flags: int, *rest: Any, **more: Any) -> int:
        do = partial(_REAL["open"], path, flags, *rest, **more)
        if not flags & os.O_CREAT or not self._is_ours(path) or os.path.lexists(path):
            return int(do())
        return int(self._watcher(Call("open", os.path.abspath(path)), do, _nothing))

    def write(self, file: int, data: Any) -> int:
        path, content = _path_of(file), bytes(data)
        if not self._is_ours(path):
            return int(_REAL["write"](file, data))
        whole = partial(_REAL["write"], file, content)
        half = partial(_REAL["write"], file, content[: len(content) // 2])
        return int(self._watcher(Call("write", path, data=content), whole, half))

    def fsync(self, file: int) -> None:
        path = _path_of(file)
        if self._is_ours(path):
            self._watcher(Call("fsync", path), partial(_REAL["fsync"], file), _nothing)

    def _whole(self, path: Any, content: bytes) -> None:
        """Write a file by ``open`` and ``write``, which are watched."""
        file = self.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        try:
            self.write(file, content)
        finally:
            os.close(file)

    def save_file(self, tensors: Any, path: Any, metadata: Any) -> None:
        self._whole(path, save(tensors, metadata))

    def write_bytes(self, path: Path, content: Any) -> int:
        if not self._is_ours(path):
            return _REAL_BYTES(path, content)
        self._whole(path, bytes(content))
        return len(content)

    def write_text(self, path: Path, text: str, *rest: Any, **more: Any) -> int:
        if not self._is_ours(path):
            return _REAL_TEXT(path, text, *rest, **more)
        return self.write_bytes(path, text.encode())


def _path_of(file: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{file}")
    except OSError:
        return ""


def _nothing() -> None:
    """Half of a call that is made at once, or not at all."""
