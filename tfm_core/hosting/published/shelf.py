"""The published runs of a server: a folder each, under a secret name.

They are in a folder beside the runs. A name has 256 bits, so nobody guesses one; it is not the
run's id, which allows more than watching.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tfm_core.disk import rename
from tfm_core.hosting.published.folder import is_served
from tfm_core.runs.auth import is_token, new_token
from tfm_core.runs.disk import trash
from tfm_core.runs.disk.atomic import read_json, write_json
from tfm_core.runs.disk.cleanup import DRAFT, PUBLISHED, PUBLISHED_SOURCE
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.queue.limits import LimitReached

FOLDER = PUBLISHED
_SOURCE = PUBLISHED_SOURCE  # a name that is not served


@dataclass(frozen=True, slots=True)
class Published:
    """A published run: its id, the token in its address, and its folder."""

    run_id: str
    token: str
    folder: Path

    @property
    def lock(self) -> Path:
        """Locked by the publisher; beside the folder, so that the folder can be moved."""
        return self.folder.with_name(f".{self.token}.lock")


class Shelf:
    """What of the runs in a folder is published. Safe to share between threads and processes.

    polls: how often pages have asked how far a run is, by token, since this process began.
    """

    def __init__(self, root: Path) -> None:
        """Look below a folder of runs, which need not exist yet."""
        self.path = root / FOLDER
        self.polls: Counter[str] = Counter()

    def list(self) -> list[Published]:
        """Return all that is published. Never raises."""
        try:
            names = sorted(os.listdir(self.path))
        except OSError:
            return []
        found = []
        for token in filter(is_token, names):
            said = read_json(self.path / token / _SOURCE)
            if said is not None and isinstance(said.get("run"), str):
                found.append(Published(said["run"], token, self.path / token))
        return found

    def of(self, run_id: str) -> Published | None:
        """Return how a run is published, None where it is not."""
        return next((one for one in self.list() if one.run_id == run_id), None)

    def publish(self, run_id: str, *, most: int) -> Published:
        """Give a run an address; the publisher then writes its files.

        most: runs that may be published here. Raises LimitReached, and OSError.
        """
        with limit_lock(self.path.parent, "published"):
            known = self.of(run_id)
            if known is not None:
                return known
            if len(self.list()) >= most:
                raise LimitReached(
                    "{n} runs are published, the limit here. Unpublish one first.", n=most
                )
            return self._new(run_id)

    def _new(self, run_id: str) -> Published:
        """Make the folder of a published run, whole at once. Raises OSError; nothing is left."""
        token = new_token()
        draft = self.path / f"{DRAFT}{secrets.token_hex(8)}"
        try:
            draft.mkdir(parents=True)
            write_json(draft / _SOURCE, {"run": run_id})
            rename(draft, self.path / token)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return Published(run_id, token, self.path / token)

    def unpublish(self, run_id: str) -> None:
        """Remove everything published of a run, and so its address."""
        for one in self.list():
            if one.run_id == run_id:
                gone = self.path / f"{trash.GOING}{secrets.token_hex(8)}"  # at once, and as a whole
                try:
                    rename(one.folder, gone)
                except OSError:  # moved by another server, or somebody reads it for long
                    gone = one.folder
                shutil.rmtree(gone, ignore_errors=True)
                with contextlib.suppress(OSError):
                    one.lock.unlink()
                self.polls.pop(one.token, None)

    def file(self, token: str, name: str) -> Path | None:
        """Return where a file of a published run lies; None for what is not published.

        The token and the name come from strangers.
        """
        return self.path / token / name if is_token(token) and is_served(name) else None


@lru_cache(maxsize=8)
def shelf(root: Path) -> Shelf:
    """Return the one shelf of this process for a folder of runs."""
    return Shelf(root)
