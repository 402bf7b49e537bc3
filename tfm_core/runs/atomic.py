"""Files that are either the old one or the new one, never half of one."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from tfm_core.reading import Unreadable, object_of


def write_bytes(path: Path, content: bytes) -> None:
    """Write beside and rename, so that a reader never sees half a file. Raises OSError."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def write_json(path: Path, values: Any) -> None:
    """Write plain values as JSON, whole or not at all. Raises OSError."""
    write_bytes(path, (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a small JSON file, or None where there is none that can be read."""
    try:
        return object_of(path, most=2**20)
    except (FileNotFoundError, Unreadable):
        return None
