"""Requests: what the app asks of the worker that holds a run.

A request is a small file, dropped whole and taken in order: ``{time}-{kind}``.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Literal, get_args

from tfm_core.runs.atomic import write_bytes

RequestKind = Literal["pause", "resume", "step", "stop", "snapshot"]
KINDS: tuple[RequestKind, ...] = get_args(RequestKind)


def drop(folder: Path, kind: RequestKind) -> None:
    """Leave a request for the worker of a run. Raises OSError."""
    name = f"{time.time_ns():020d}-{secrets.token_hex(3)}-{kind}"
    (folder / "requests").mkdir(exist_ok=True)
    write_bytes(folder / "requests" / name, b"")


def take(folder: Path) -> list[RequestKind]:
    """Return the waiting requests, oldest first, and remove them; what is none is removed too."""
    try:
        names = sorted(os.listdir(folder / "requests"))
    except OSError:
        return []
    taken: list[RequestKind] = []
    for name in names:
        if name.startswith("."):  # being written
            continue
        try:
            (folder / "requests" / name).unlink()
        except OSError:
            continue
        taken += [kind for kind in KINDS if name.endswith(f"-{kind}")]
    return taken
