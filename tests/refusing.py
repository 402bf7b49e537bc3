"""A disk that refuses to be written below one folder, whatever the user who runs the tests may."""

import builtins
import contextlib
import io
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CALLS = ("mkdir", "rename", "replace", "unlink", "rmdir", "utime", "link")


@contextlib.contextmanager
def refusing(root: Path, number: int) -> Iterator[None]:
    """Let the operating system refuse every change below ``root`` with an error number."""
    below = str(root)

    def refuses(path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(below)

    def refusal(path: Any) -> OSError:
        return OSError(number, os.strerror(number), os.fspath(path))

    def changing(call: Callable[..., Any]) -> Callable[..., Any]:
        def changed(path: Any, *rest: Any, **more: Any) -> Any:
            if refuses(path):
                raise refusal(path)
            return call(path, *rest, **more)

        return changed

    def opened(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if refuses(path) and flags & _WRITES:
            raise refusal(path)
        return _open(path, flags, *rest, **more)

    def read_only(call: Callable[..., Any]) -> Callable[..., Any]:
        def file(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            if refuses(path) and set(mode) & set("wax+"):
                raise refusal(path)
            return call(path, mode, *rest, **more)

        return file

    def refused_table(address: str, *rest: Any, **more: Any) -> sqlite3.Connection:
        if address.startswith(root.as_uri()) and "mode=rwc" in address:
            raise refusal(address)
        return _connect(address, *rest, **more)

    _open, _connect = os.open, sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", refused_table)
        for name in _CALLS:
            patch.setattr(os, name, changing(getattr(os, name)))
        patch.setattr(os, "open", opened)
        patch.setattr(io, "open", read_only(io.open))
        patch.setattr(builtins, "open", read_only(builtins.open))
        yield
