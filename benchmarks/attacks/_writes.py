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
from pathlib import Path
from typing import Any

from safetensors.torch import save

from tfm_core.training import checkpoints


@dataclass(frozen=True, slots=True)
class Call:
    """One call that changes something: its name, the file, and where its name goes."""

    name: str
    path: str
    target: str = ""
    data: bytes = b""


Watcher = Callable[[Call, Callable[[], Any], Callable[[], Any]], Any]
"""Gets a call, what makes it, and what makes half of it; returns what the call returns."""

_PATHS = ("unlink", "remove", "mkdir", "rmdir", "truncate")
_MOVES = ("replace", "rename", "link")


@contextlib.contextmanager
def watched(root: Path, watcher: Watcher) -> Iterator[None]:
    """Show a watcher every call that changes something below a folder."""
    top = f"{root.resolve()}{os.sep}"
    real = {name: getattr(os, name) for name in (*_PATHS, *_MOVES, "open", "write", "fsync")}
    real_save, real_bytes, real_text = checkpoints.save_file, Path.write_bytes, Path.write_text

    def is_ours(path: object) -> bool:
        return isinstance(path, str | Path) and f"{os.path.abspath(path)}{os.sep}".startswith(top)

    def path_of(file: int) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{file}")
        except OSError:
            return ""

    def on_path(name: str) -> Callable[..., Any]:
        def call(path: Any, *rest: Any, **more: Any) -> Any:
            def do() -> Any:
                return real[name](path, *rest, **more)

            return (
                watcher(Call(name, os.path.abspath(path)), do, _nothing) if is_ours(path) else do()
            )

        return call

    def on_move(name: str) -> Callable[..., Any]:
        def call(path: Any, target: Any, *rest: Any, **more: Any) -> Any:
            def do() -> Any:
                return real[name](path, target, *rest, **more)

            if not is_ours(path):
                return do()
            moved = Call(name, os.path.abspath(path), os.path.abspath(target))
            return watcher(moved, do, _nothing)

        return call

    def open_(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        def do() -> Any:
            return real["open"](path, flags, *rest, **more)

        if not flags & os.O_CREAT or not is_ours(path) or os.path.lexists(path):
            return int(do())
        return int(watcher(Call("open", os.path.abspath(path)), do, _nothing))

    def write(file: int, data: Any) -> int:
        path, content = path_of(file), bytes(data)
        if not is_ours(path):
            return int(real["write"](file, data))
        return int(
            watcher(
                Call("write", path, data=content),
                lambda: real["write"](file, content),
                lambda: real["write"](file, content[: len(content) // 2]),
            )
        )

    def fsync(file: int) -> None:
        path = path_of(file)
        if not is_ours(path):
            return
        watcher(Call("fsync", path), lambda: real["fsync"](file), _nothing)

    def whole(path: Any, content: bytes) -> None:
        """Write a file by ``open`` and ``write``, which are watched."""
        file = open_(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        try:
            write(file, content)
        finally:
            os.close(file)

    def save_file(tensors: Any, path: Any, metadata: Any) -> None:
        whole(path, save(tensors, metadata))

    def write_bytes(path: Path, content: Any) -> int:
        if not is_ours(path):
            return real_bytes(path, content)
        whole(path, bytes(content))
        return len(content)

    def write_text(path: Path, text: str, *rest: Any, **more: Any) -> int:
        if not is_ours(path):
            return real_text(path, text, *rest, **more)
        return write_bytes(path, text.encode())

    try:
        for name in _PATHS:
            setattr(os, name, on_path(name))
        for name in _MOVES:
            setattr(os, name, on_move(name))
        os.open, os.write, os.fsync = open_, write, fsync
        checkpoints.save_file = save_file  # type: ignore[assignment]
        Path.write_bytes, Path.write_text = write_bytes, write_text  # type: ignore[assignment, method-assign]
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)
        checkpoints.save_file = real_save
        Path.write_bytes, Path.write_text = real_bytes, real_text  # type: ignore[method-assign]


def _nothing() -> None:
    """Half of a call that is made at once, or not at all."""
