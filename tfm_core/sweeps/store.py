"""The sweeps of a folder of runs: a folder each, below ``sweeps``, with its plan and its trials.

sweeps/<id>/sweep.json     the plan, changed by the app at any time
sweeps/<id>/trials.json    what was tried, and what it came to
sweeps/<id>/lock           locked by whoever changes either
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tfm_core.disk import rename, sync_folder
from tfm_core.runs.disk import locks, trash
from tfm_core.runs.disk.atomic import write_json
from tfm_core.runs.disk.failures import os_errors_as_sentences
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.disk.trash import SWEEPS
from tfm_core.runs.run import ID
from tfm_core.runs.store import new_id
from tfm_core.sentences import StudentError
from tfm_core.sweeps import plan as plans
from tfm_core.sweeps.plan import Plan, SweepDamaged

FOLDER = SWEEPS
TRIALS = "trials.json"

MAX = 500
"""Sweeps that a folder of runs may hold; each is looked at every second while it is active."""

PATIENCE = 20.0
"""Seconds to wait for a sweep's lock: a server may be asking Optuna for a suggestion."""

_DRAFT = ".new-"


class SweepNotFound(StudentError):
    """There is no sweep with this id."""


class Sweep:
    """A folder of a sweep. Cheap to make; everything is read when it is asked for."""

    def __init__(self, folder: Path) -> None:
        """Point at a folder, which need not be whole."""
        self.folder = folder

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def trials(self) -> Path:
        """The file of its trials, missing before the first."""
        return self.folder / TRIALS

    def plan(self) -> Plan:
        """Return the plan as it is now. Raises SweepDamaged, in a sentence."""
        return plans.read(self.folder)

    @contextlib.contextmanager
    def locked(self, patience: float = PATIENCE) -> Iterator[None]:
        """Keep others from changing the sweep. Raises BlockingIOError and OSError."""
        lock = locks.lock(self.folder / "lock", patience=patience)
        try:
            yield
        finally:
            locks.unlock(lock)

    @os_errors_as_sentences()
    def change(self, edit: Callable[[Plan], Plan]) -> Plan:
        """Change the plan under its lock. Raises ValueError, in a sentence; then nothing changes.

        Another space, budget or search counts from the next suggestion on.
        """
        try:
            with self.locked():
                changed = edit(self.plan())
                changed.check()
                self.write(changed)
        except BlockingIOError:
            raise StudentError("Another server is using this sweep. Try again.") from None
        return changed

    def write(self, plan: Plan) -> None:
        """Replace the plan, with the sweep's lock. Raises OSError."""
        write_json(self.folder / plans.FILE, plan.values(), lasting=True)


class SweepStore:
    """The sweeps beside the runs of a folder."""

    def __init__(self, root: Path) -> None:
        """Look below a folder of runs."""
        self.root = root / FOLDER

    @os_errors_as_sentences()
    def create(self, plan: Plan) -> Sweep:
        """Make a sweep's folder, whole at once. Raises ValueError, in a sentence."""
        plan.check()
        with limit_lock(self.root.parent, "sweeps"):
            if len(self.list()) >= MAX:
                raise StudentError("There are {most} sweeps already. Delete one first.", most=MAX)
            return self._new(plan)

    def _new(self, plan: Plan) -> Sweep:
        self.root.mkdir(parents=True, exist_ok=True)
        name = new_id()
        draft = self.root / f"{_DRAFT}{name}"
        try:
            draft.mkdir()
            Sweep(draft).write(plan)
        except (OSError, ValueError):
            shutil.rmtree(draft, ignore_errors=True)
            raise
        rename(draft, self.root / name)
        sync_folder(self.root)
        return Sweep(self.root / name)

    def list(self) -> list[Sweep]:
        """Return all sweeps, newest first, the damaged behind them. Never raises."""
        try:
            with os.scandir(self.root) as entries:
                found = [
                    Sweep(Path(entry.path))
                    for entry in entries
                    if ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            return []
        return sorted(found, key=_age, reverse=True)

    def get(self, sweep_id: str) -> Sweep:
        """Return the sweep with an id. Raises SweepNotFound, in a sentence."""
        if not ID.fullmatch(sweep_id) or not os.path.isdir(self.root / sweep_id):
            raise SweepNotFound("There is no sweep {sweep_id}.", sweep_id=sweep_id[:64])
        return Sweep(self.root / sweep_id)

    @os_errors_as_sentences()
    def delete(self, sweep_id: str) -> None:
        """Put a sweep into the trash, from where ``undelete`` takes it back; its runs stay.

        Raises ValueError, in a sentence.
        """
        sweep = self.get(sweep_id)
        with contextlib.suppress(SweepDamaged):
            if sweep.plan().state in ("active", "stopping"):
                raise StudentError("This sweep is running. Stop it first.")
        trash.put(self.root, sweep.id)

    def deleted(self) -> tuple[Sweep, ...]:
        """Return the sweeps that can be brought back, that first which went last. Never raises."""
        return tuple(Sweep(one.folder) for one in reversed(trash.deleted(self.root)))

    @os_errors_as_sentences()
    def undelete(self, sweep_id: str) -> Sweep:
        """Take a sweep back out of the trash. Raises ValueError, in a sentence."""
        if not ID.fullmatch(sweep_id) or not trash.restore(self.root, sweep_id):
            raise SweepNotFound(
                "There is no deleted sweep {sweep_id} to restore.", sweep_id=sweep_id[:64]
            )
        return self.get(sweep_id)


def _age(sweep: Sweep) -> str:
    try:
        return sweep.plan().created
    except SweepDamaged:
        return ""
