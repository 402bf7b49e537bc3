"""Claims: at most one process works on a run, whatever number of servers share its folder.

Claims are numbered files that only one process can create (``O_EXCL``); the highest number counts.
A dead holder is followed by creating the next number, never by removing its file: two that find
the same dead claim cannot both win.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from tfm_core.runs.atomic import read_json, write_json
from tfm_core.runs.process import ProcessMark, is_alive, is_same
from tfm_core.runs.status import read_status
from tfm_core.sentences import StudentError

_WRITING_SECONDS = 5.0  # an empty claim younger than this is just being written


class RunHeld(StudentError):
    """Another process works on this run."""


def take(folder: Path, owner: ProcessMark) -> bool:
    """Claim a run for a process; say whether it holds the run now. Raises OSError."""
    claims = folder / "claims"
    claims.mkdir(exist_ok=True)
    number = _highest(claims)
    if number:
        values = read_json(claims / _name(number))
        if values is None and _age(claims / _name(number)) < _WRITING_SECONDS:
            return False
        holder = _mark(values)
        if holder is not None and is_same(holder, owner):
            return True
        if holder is not None and is_alive(holder, heartbeat=read_status(folder).heartbeat):
            return False
    try:
        file = os.open(claims / _name(number + 1), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(file, json.dumps(_values(owner)).encode())
    finally:
        os.close(file)
    return True


def release(folder: Path, owner: ProcessMark) -> None:
    """Release a run, if the process holds it. Raises OSError."""
    claims = folder / "claims"
    number = _highest(claims)
    holder = _mark(read_json(claims / _name(number))) if number else None
    if holder is not None and is_same(holder, owner):
        write_json(claims / _name(number), {"released": True})


def _name(number: int) -> str:
    return f"{number:06d}.json"


def _highest(claims: Path) -> int:
    try:
        names = os.listdir(claims)
    except OSError:
        return 0
    stems = [name.removesuffix(".json") for name in names if name.endswith(".json")]
    return max((int(stem) for stem in stems if stem.isascii() and stem.isdigit()), default=0)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _values(mark: ProcessMark) -> dict[str, Any]:
    return {"pid": mark.pid, "host": mark.host, "created": mark.created}


def _mark(values: dict[str, Any] | None) -> ProcessMark | None:
    if not values or not isinstance(values.get("pid"), int):
        return None
    return ProcessMark(values["pid"], str(values.get("host")), values.get("created"))
