"""Which server a run belongs to: the hidden folder ``.elsewhere`` among the runs.

theirs/<id>           a run of another server: its machine, and another line if the store has a
                      checkpoint
<store>/<id>.json     the state of the run in the store (see ``hosting.store.sync_state``)
<store>/<id>.lock     locked by the process that uploads or fetches the run
removed/<id>          a run that was deleted here for good, until the store knows
trouble               why a worker cannot upload, in a sentence
server                this folder's name among the servers
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

from tfm_core.disk import remove, replace
from tfm_core.runs.disk.atomic import write_bytes

FOLDER = ".elsewhere"
_TROUBLE_SECONDS = 120.0


def theirs(folder: Path) -> str | None:
    """Return the machine of the server that owns a run, or None if it is this server's."""
    try:
        return _theirs(folder).read_text("utf-8").partition("\n")[0] or "?"
    except (OSError, ValueError):
        return None


def has_checkpoint(folder: Path) -> bool:
    """Return whether another server's run can be resumed: its checkpoint is fetched when needed."""
    try:
        return "\n" in _theirs(folder).read_text("utf-8")
    except (OSError, ValueError):
        return False


def is_theirs(folder: Path) -> bool:
    """Return whether a run is another server's, so that only that server may change it."""
    return os.path.lexists(f"{folder.parent}{os.sep}{FOLDER}{os.sep}theirs{os.sep}{folder.name}")


def set_theirs(folder: Path, host: str, *, has_checkpoint: bool = False) -> None:
    """Note that the run in a folder is another server's. Raises OSError."""
    _write(_theirs(folder), f"{host}\n" if has_checkpoint else host)


def set_mine(folder: Path) -> None:
    """Note that the run in a folder is this server's. Raises OSError."""
    remove(_theirs(folder))


def note_removed(folder: Path) -> None:
    """Note that a run was deleted for good, if there is a store. Never raises."""
    root = _root(folder)
    if _place(root).is_dir() and not is_theirs(root / folder.name):
        with contextlib.suppress(OSError):
            _write(_place(root) / "removed" / folder.name, "")


def removed(root: Path) -> list[str]:
    """Return the ids of deleted runs that the store may still have."""
    try:
        return os.listdir(_place(root) / "removed")
    except OSError:
        return []


def is_removed(folder: Path) -> bool:
    """Return whether a run was deleted and the store may still have it."""
    return (_place(_root(folder)) / "removed" / folder.name).exists()


def forget_removed(folder: Path) -> None:
    """Forget that a run was deleted: it was not, or the store no longer has it. Never raises."""
    with contextlib.suppress(OSError):
        (_place(_root(folder)) / "removed" / folder.name).unlink()


def note_trouble(root: Path, sentence: str | None) -> None:
    """Note why a worker cannot upload, or that it can again. Never raises."""
    with contextlib.suppress(OSError):
        if sentence is None:
            (_place(root) / "trouble").unlink(missing_ok=True)
        else:
            _write(_place(root) / "trouble", sentence)


def trouble(root: Path) -> str | None:
    """Return why a worker cannot upload, in a sentence, or None.

    A worker repeats it with each try, so an old note is from one that was killed.
    """
    path = _place(root) / "trouble"
    try:
        is_old = abs(time.time() - path.stat().st_mtime) > _TROUBLE_SECONDS
        return None if is_old else path.read_text("utf-8") or None
    except (OSError, ValueError):
        return None


def server(root: Path) -> str:
    """Return the name of this folder of runs among the servers. Raises OSError."""
    path = _place(root) / "server"
    for _attempt in range(2):
        with contextlib.suppress(FileNotFoundError):
            return path.read_text("utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".server.{secrets.token_hex(4)}")
        aside.write_text(secrets.token_hex(8), "utf-8")
        with contextlib.suppress(OSError):  # another process was quicker, or there are no links
            os.link(aside, path)
        if not path.exists():
            replace(aside, path)
        aside.unlink(missing_ok=True)
    return path.read_text("utf-8")


def of_store(root: Path, key: str) -> Path:
    """Return the folder with the states of one store, which is created. Raises OSError."""
    folder = _place(root) / key
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _root(folder: Path) -> Path:
    return folder.parent.parent if folder.parent.name == ".trash" else folder.parent


def _theirs(folder: Path) -> Path:
    return _place(folder.parent) / "theirs" / folder.name


def _place(root: Path) -> Path:
    return root / FOLDER


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, text.encode())
