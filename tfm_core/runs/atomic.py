"""Files that are either the old one or the new one, never half of one."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from tfm_core.disk import BINARY, replace, sync_folder
from tfm_core.reading import Unreadable, object_of


def write_bytes(path: Path, content: bytes, *, lasting: bool = False) -> None:
    """Write beside and rename, so that a reader never sees half a file. Raises OSError.

    lasting: also after a power cut: the content is on the disk before the name points to it, and
    the name is when this returns.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_new(beside, content, lasting=lasting)
        replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    if lasting:
        sync_folder(path.parent)


def write_new(path: Path, content: bytes, *, lasting: bool = False) -> None:
    """Write a file that must not be there yet. Raises OSError; then half of it may lie there."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        if lasting:
            os.fsync(file)
    finally:
        os.close(file)


def write_json(path: Path, values: Any, *, lasting: bool = False) -> None:
    """Write plain values as JSON, whole or not at all; see ``write_bytes``. Raises OSError."""
    content = (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()
    write_bytes(path, content, lasting=lasting)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a small JSON file, or None where there is none that can be read."""
    try:
        return object_of(path, most=2**20)
    except (FileNotFoundError, Unreadable):
        return None
