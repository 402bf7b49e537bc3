"""The waiting line: one SQLite table, in a file beside the runs, with the order of waiting runs.

The table only sets the order. What a run is, its folder says; a table that is missing or damaged is
made again from the folders (``restore``).
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfm_core.runs.disk.atomic import CachedReader, read_json
from tfm_core.runs.disk.locks import FOLDER, PATIENCE_SECONDS
from tfm_core.runs.status import read_status
from tfm_core.sentences import StudentError

FILE = "line.sqlite"
"""The table's file, in the folder of the queue."""

_TABLE = "CREATE TABLE IF NOT EXISTS line (id TEXT PRIMARY KEY, owner TEXT, place INTEGER NOT NULL)"
_ERRORS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_CORRUPT: errno.EBADMSG,
    sqlite3.SQLITE_NOTADB: errno.EBADMSG,
}

start_errors: dict[Path, str] = {}
"""Why the run in a folder could not start, in a sentence. Kept in memory, because a full disk, the
most common reason, has no space for it."""


class Unavailable(StudentError):
    """Nothing can train a run now; ``sentence`` says why. The run keeps waiting."""


def ids(root: Path) -> list[str]:
    """Return the ids of the waiting runs in their order. Never raises."""
    try:
        return list(_LINES.of(root / FOLDER, FILE))
    except OSError:
        return []


def waits(folder: Path) -> bool:
    """Return whether a run in the line waits, also if its server was killed while starting it."""
    state = read_status(folder).state
    if state != "interrupted":
        return state == "queued"
    return (read_json(folder / "status.json") or {}).get("state") == "starting"


def join(root: Path, run_id: str, owner: str | None, served: Iterable[str | None] = ()) -> None:
    """Put a run into the line, unless it is in it. Raises OSError.

    The line serves owners in turn, each one's runs in their order: the n-th run of an owner stands
    behind all waiting runs that are the n-th or an earlier one of theirs. This is round robin, the
    simplest fair queueing (Nagle 1987, RFC 970): who starts eight runs delays each other owner by
    one of them. served: the owners of the runs that had their turn.
    """
    with _changed(root) as table:
        rows = table.execute("SELECT id, owner, place FROM line ORDER BY place").fetchall()
        if any(other_id == run_id for other_id, _, _ in rows):
            return
        turns = Counter(served)
        turn = turns[owner] + sum(other == owner for _, other, _ in rows)
        place = 0
        for _, other, its_place in rows:
            if turns[other] <= turn:
                place = its_place + 1
            turns[other] += 1
        table.execute("UPDATE line SET place = place + 1 WHERE place >= ?", (place,))
        table.execute("INSERT INTO line VALUES (?, ?, ?)", (run_id, owner, place))


def leave(root: Path, run_id: str) -> None:
    """Take a run out of the line. Never raises: the queue passes over a run that doesn't wait."""
    if run_id in ids(root):
        with contextlib.suppress(OSError), _changed(root) as table:
            table.execute("DELETE FROM line WHERE id = ?", (run_id,))


def restore(root: Path, owners: dict[str, str | None]) -> None:
    """Append those of the queued runs that are missing. Raises OSError.

    The table is new, or a server was killed before it wrote them. owners: by run, oldest first.
    """
    path = root / FOLDER / FILE
    try:
        _read(path)
    except OSError as error:
        if error.errno == errno.EBADMSG:
            path.unlink()
    there = ids(root)
    for run_id, owner in owners.items():
        if run_id not in there:
            join(root, run_id, owner)


@contextlib.contextmanager
def _changed(root: Path) -> Iterator[sqlite3.Connection]:
    """Give the table, which nobody else changes meanwhile. Raises OSError."""
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    with _opened(root / FOLDER / FILE, "rwc") as table:
        table.execute("BEGIN IMMEDIATE")
        with table:  # commits, or rolls back
            table.execute(_TABLE)
            yield table


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Give the table as it is. Raises OSError."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        opened = sqlite3.connect(address, PATIENCE_SECONDS, isolation_level=None, uri=True)
        with contextlib.closing(opened) as table:
            yield table
    except sqlite3.Error as error:
        number = _ERRORS.get(error.sqlite_errorcode & 0xFF, errno.EIO)
        raise OSError(number, str(error), str(path)) from error


def _read(path: Path) -> tuple[str, ...]:
    with _opened(path, "rw") as table:
        return tuple(run_id for (run_id,) in table.execute("SELECT id FROM line ORDER BY place"))


_LINES = CachedReader(_read)
