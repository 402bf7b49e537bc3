"""Claims: at most one process works on a run, whatever programs share its folder.

Claims are numbered files; the highest number counts and names its process. A claim is written
aside and linked to its number, which only one process can do and which leaves no partial claim. The
claim of a dead process is replaced by linking the next number, never by removing its file: two
processes that find the same dead claim cannot both win.

Whether a holder lives does not depend on the clock. A worker keeps ``claims/lock`` locked, which
the operating system releases when it ends. Where there are no locks, and before a worker has its
run, the process itself is checked (``process.identity``).

Only the holder of the claim writes the run's status; see ``run_queue`` for the order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfm_core.disk import remove
from tfm_core.runs.disk import locks
from tfm_core.runs.disk.atomic import read_json, write_json, write_new
from tfm_core.runs.process.identity import ProcessId, is_alive, is_same, process_id
from tfm_core.runs.status import read_status
from tfm_core.sentences import StudentError

FOLDER = "claims"

_WRITING_SECONDS = 0.25  # without hard links, a claim is empty for a moment
_LOCK_SECONDS = 1.0  # somebody may just be looking whether it is locked, or be dying
_LOOK_SECONDS = 0.02
_NO_LINKS = {
    errno.EPERM,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EMLINK,
    errno.EINVAL,  # what Python makes of the words of Windows
}

_one_moment = threading.Lock()  # threads of one process share its claim


class RunHeld(StudentError):
    """Another process works on this run."""


class Hold:
    """A run that this process holds while it works on it."""

    def __init__(self, folder: Path) -> None:
        """Claim the run and lock it. Raises RunHeld, and OSError where no file can be written."""
        self.folder, self.mark = folder, process_id()
        _take_or_raise(folder, self.mark)
        try:
            self._lock: int | None = locks.lock(_lock(folder), patience=_LOCK_SECONDS)
        except BlockingIOError:
            release(folder, self.mark)
            raise _held(folder) from None

    def release(self) -> None:
        """Let others work on it; once is enough. Raises OSError."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        locks.unlock(lock)
        release(self.folder, self.mark)

    @property
    def is_mine(self) -> bool:
        """Whether no other process took the run over while this one was suspended."""
        holder = _holder(self.folder)
        return holder is not None and is_same(holder, self.mark)


@contextlib.contextmanager
def moment(folder: Path) -> Iterator[None]:
    """Hold a run for as long as it takes to change its status. Raises RunHeld and OSError."""
    with _one_moment:
        mark = process_id()
        _take_or_raise(folder, mark)
        try:
            yield
        finally:
            release(folder, mark)


def take(folder: Path, owner: ProcessId) -> bool:
    """Claim a run for a process; return whether it holds the run now. Raises OSError."""
    claims = folder / FOLDER
    claims.mkdir(exist_ok=True)
    number = _highest(claims)
    holder = _mark(_read(claims / _name(number))) if number else None
    if holder is not None:
        if is_same(holder, owner) and holder.started == owner.started:
            return True
        if _is_alive(holder, folder):
            return False
    elif locks.is_locked(_lock(folder)):
        return False
    return _create(claims, number + 1, owner)


def release(folder: Path, owner: ProcessId) -> None:
    """Release a run, if the process holds it. Raises OSError."""
    holder = _holder(folder)
    if holder is None or not is_same(holder, owner):
        return
    path = folder / FOLDER / _name(_highest(folder / FOLDER))
    try:
        write_json(path, {"released": True})
    except OSError:  # a full disk: an empty file needs no space and means the same
        os.truncate(path, 0)


def is_held(folder: Path) -> bool:
    """Return whether a process that lives holds a run. Never raises."""
    holder = _holder(folder)
    if holder is None:
        return locks.is_locked(_lock(folder))
    return _is_alive(holder, folder)


def _take_or_raise(folder: Path, owner: ProcessId) -> None:
    """Claim a run. Raises RunHeld, and OSError.

    The lock of a process that was killed goes with its last thread, a moment after the process
    reads as dead.
    """
    end = time.monotonic() + _LOCK_SECONDS
    while not take(folder, owner):
        holder = _holder(folder)
        is_dying = locks.is_locked(_lock(folder)) and not (
            holder is not None and is_alive(holder, heartbeat=read_status(folder).heartbeat)
        )
        if not is_dying or time.monotonic() >= end:
            raise _held(folder)
        time.sleep(_LOOK_SECONDS)


def _is_alive(holder: ProcessId, folder: Path) -> bool:
    return locks.is_locked(_lock(folder)) or is_alive(
        holder, heartbeat=read_status(folder).heartbeat
    )


def _create(claims: Path, number: int, owner: ProcessId) -> bool:
    """Create the claim of a number; return whether this call did, and whether it counts."""
    path, aside = claims / _name(number), claims / f".claim.{secrets.token_hex(4)}"
    content = json.dumps(dataclasses.asdict(owner)).encode()
    try:
        write_new(aside, content)
        if not _link(aside, path, content):
            return False
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()
    if _highest(claims) != number:  # the list of names was torn by others' claims
        remove(path)
        return False
    for old in _numbers(claims):
        if old < number - 1:
            with contextlib.suppress(OSError):  # it no longer counts
                (claims / _name(old)).unlink()
    return True


def _link(aside: Path, path: Path, content: bytes) -> bool:
    try:
        os.link(aside, path)
    except FileExistsError:
        # a network folder may have done it and lost the answer
        return os.stat(aside).st_nlink == 2
    except FileNotFoundError:  # removed by a quicker process
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            write_new(path, content)
        except FileExistsError:
            return False
    return True


def _held(folder: Path) -> RunHeld:
    return RunHeld("Another process trains the run {id}.", id=folder.name)


def _lock(folder: Path) -> Path:
    return folder / FOLDER / "lock"


def _name(number: int) -> str:
    return f"{number:06d}.json"


def _numbers(claims: Path) -> list[int]:
    try:
        names = os.listdir(claims)
    except OSError:
        return []
    stems = [name.removesuffix(".json") for name in names if name.endswith(".json")]
    return [int(stem) for stem in stems if stem.isascii() and stem.isdigit() and len(stem) < 16]


def _highest(claims: Path) -> int:
    return max(_numbers(claims), default=0)


def _holder(folder: Path) -> ProcessId | None:
    """Return the process with the valid claim, or None if the run is free."""
    claims = folder / FOLDER
    number = _highest(claims)
    return _mark(_read(claims / _name(number))) if number else None


def _read(path: Path) -> dict[str, Any] | None:
    """Read a claim; one that is no claim gets the moment that it may take to be written."""
    end = time.monotonic() + _WRITING_SECONDS
    while (values := read_json(path)) is None and time.monotonic() < end and os.path.exists(path):
        time.sleep(_LOOK_SECONDS)
    return values


def _mark(values: dict[str, Any] | None) -> ProcessId | None:
    if values is None:
        return None
    pid, host = values.get("pid"), values.get("host")
    created, started = values.get("created"), values.get("started")
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 2**31:
        return None
    return ProcessId(
        pid,
        str(host),
        float(created) if isinstance(created, int | float) and 0 < created < 1e12 else None,
        started if isinstance(started, str) else None,
    )
