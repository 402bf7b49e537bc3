"""The store: all runs of a folder, and the recorded ones that come with the app."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import shutil
import string
import time
from datetime import UTC, datetime
from pathlib import Path

from tfm_core.config import Experiment, to_json
from tfm_core.runs import settings
from tfm_core.runs.atomic import read_json, write_json
from tfm_core.runs.run import ID, MAX_NAME, Meta, Run
from tfm_core.runs.status import State, Status, write_status
from tfm_core.sentences import N_, StudentError

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
"""Runs that come with the app: read-only."""

_LETTERS = string.ascii_letters + string.digits
_ID_LENGTH = 17  # 101 bits: nobody guesses one
_TRASH = ".trash"
_DELETED = "deleted.json"  # in a run's folder: who deleted it

UNDO_SECONDS = 3600.0
"""How long a visitor is offered to bring a run back."""


class RunNotFound(StudentError):
    """There is no run with this id."""


class RunStore:
    """Runs by id. ``root`` defaults to the environment's TFM_RUNS_DIR, then to ``runs``."""

    def __init__(self, root: Path | None = None, *, recorded: Path | None = RECORDED) -> None:
        """Look at a folder, which is made when the first run is created."""
        chosen = root if root is not None else settings.read().runs_dir
        self.root = Path(chosen).absolute()
        self.recorded = recorded

    def create(
        self,
        experiment: Experiment,
        *,
        device: str = "cpu",
        threads: int = 1,
        name: str | None = None,
        preset: str | None = None,
        owner: str | None = None,
        state: State = "queued",
    ) -> Run:
        """Make a run's folder, whole at once. Raises OSError, and ValueError for a bad name."""
        name = _clean(name or experiment.task.facts.label)
        meta = Meta(name, _now(), device, threads, preset=preset, owner=owner)
        status = Status(state, total_steps=experiment.training.steps, device=device)
        return self._add(self._draft(experiment, meta, status))

    def list(self) -> list[Run]:
        """Return all runs, newest first, the damaged too (see ``Run.problem``). Never raises.

        Behind them stand the recorded ones, in the order in which they were added to the app.
        """
        runs = [Run(folder) for folder in _folders(self.root)]
        runs.sort(key=lambda run: run.meta.created, reverse=True)
        if self.recorded is not None:
            kept = [Run(folder, recorded=True) for folder in _folders(self.recorded)]
            runs += sorted(kept, key=lambda run: run.meta.created)
        return runs

    def n_active(self, owner: str) -> int:
        """Return how many runs that this owner began train or wait. Never raises."""
        runs = (Run(folder) for folder in _folders(self.root))
        return sum(run.meta.owner == owner and run.status.is_active for run in runs)

    def get(self, run_id: str) -> Run:
        """Return the run with an id. Raises RunNotFound, in a sentence."""
        if not isinstance(run_id, str) or not ID.fullmatch(run_id):
            raise RunNotFound(
                "This is not the id of a run: an id is 8 to 64 letters, digits, _ and -."
            )
        if os.path.isdir(self.root / run_id):  # total, as Path.is_dir is not
            return Run(self.root / run_id)
        if self.recorded is not None and (self.recorded / run_id).is_dir():
            return Run(self.recorded / run_id, recorded=True)
        raise RunNotFound("There is no run {run_id} here; it may have been deleted.", run_id=run_id)

    def rename(self, run_id: str, name: str) -> Run:
        """Give a run another name. Raises ValueError, in a sentence."""
        run = self._mine(run_id, "renamed")
        run.write_meta(dataclasses.replace(run.meta, name=_clean(name)))
        return run

    def delete(self, run_id: str, *, by: str | None = None) -> None:
        """Move a run to the trash, from where ``undelete`` takes it back. Raises ValueError.

        by: the hash of the visitor's token, who finds it again with ``deleted_by``.
        """
        run = self._mine(run_id, "deleted")
        if run.status.state == "queued":
            run.request("stop")
        if run.status.is_alive:
            raise StudentError("This run is still training; stop it before you delete it.")
        (self.root / _TRASH).mkdir(exist_ok=True)
        with contextlib.suppress(OSError):  # on a full disk too a run can be deleted
            write_json(run.folder / _DELETED, {"by": by})
        os.utime(run.folder)
        os.rename(run.folder, self.root / _TRASH / run.id)

    def deleted_by(self, owner: str) -> tuple[Run, ...]:
        """Return what a visitor deleted in the last hour, the newest first. Never raises."""
        found = []
        for folder in _folders(self.root / _TRASH):
            with contextlib.suppress(OSError):  # taken back or removed this very moment
                age = time.time() - folder.stat().st_mtime
                if age < UNDO_SECONDS and _deleter(folder) == owner:
                    found.append((age, Run(folder)))
        return tuple(run for _age, run in sorted(found, key=lambda pair: pair[0]))

    def undelete(self, run_id: str, *, by: str | None = None) -> Run:
        """Take a run back out of the trash. Raises RunNotFound, in a sentence.

        by: only where this visitor has deleted it.
        """
        trashed = self.root / _TRASH / run_id
        is_there = ID.fullmatch(run_id) is not None and os.path.isdir(trashed)
        if not is_there or (by is not None and _deleter(trashed) != by):
            raise RunNotFound("There is no deleted run {run_id} to take back.", run_id=run_id)
        os.rename(trashed, self.root / run_id)
        (self.root / run_id / _DELETED).unlink(missing_ok=True)
        return self.get(run_id)

    def fork(
        self,
        run_id: str,
        *,
        steps: int,
        device: str | None = None,
        stays_low: bool = False,
        owner: str | None = None,
    ) -> Run:
        """Copy a run that ended, so that the copy trains further, up to ``steps`` in all.

        The copy is stopped at its parent's last checkpoint and goes on through the queue's
        ``resume``, on the parent's device unless told otherwise (of a recorded run: the CPU).
        Raises ValueError, in a sentence, for a run that still trains or has no checkpoint, and
        where ``steps`` is not beyond the steps it has done. The copy of a run that stopped early
        trains all its steps. stays_low: see ``TrainingConfig.further``. The copy is ``owner``'s.
        """
        parent = self.get(run_id)
        status = parent.status
        if status.is_active:
            raise StudentError("This run is not over yet; stop it before you train a copy further.")
        if not parent.has_checkpoint:
            raise StudentError("This run has no checkpoint, so it cannot be trained further.")
        done = status.step if (step := parent.checkpoint_step) is None else step
        if steps <= done:
            raise StudentError(
                "This run has done {done:,} steps already; choose more than that.",
                done=done,
            )
        old = parent.experiment
        training = old.training.further(steps, stays_low=stays_low)
        if status.state == "finished" and done < old.training.steps:
            # it ran out of patience: the copy would stop at once
            training = training.replace(patience=0)
        experiment = old.replace(training=training.model_dump())
        device = device or ("cpu" if parent.meta.recorded else parent.meta.device)
        meta = dataclasses.replace(
            parent.meta,
            created=_now(),
            device=device,
            recorded=False,
            parent=parent.id,
            owner=owner,
        )
        stopped = Status(
            "stopped",
            step=done,
            total_steps=steps,
            epoch=status.epoch,
            device=device,
            reason=N_("Goes on from step {done:,} of “{name}”.", done=done, name=meta.name),
            seconds=status.seconds,
        )
        folder = self._draft(experiment, meta, stopped)
        _copy(parent.folder, folder)
        return self._add(folder)

    def _mine(self, run_id: str, verb: str) -> Run:
        run = self.get(run_id)
        if run.meta.recorded:
            raise StudentError("This run comes with the app and cannot be {verb}.", verb=verb)
        return run

    def _draft(self, experiment: Experiment, meta: Meta, status: Status) -> Path:
        """Write a new run under a name that no list shows yet."""
        self.root.mkdir(parents=True, exist_ok=True)
        folder = self.root / f".new-{_new_id()}"
        for part in ("snapshots", "checkpoints", "requests"):
            (folder / part).mkdir(parents=True)
        (folder / "experiment.json").write_text(to_json(experiment), encoding="utf-8")
        write_json(folder / "meta.json", dataclasses.asdict(meta))
        write_status(folder, status)
        return folder

    def _add(self, draft: Path) -> Run:
        folder = self.root / draft.name.removeprefix(".new-")
        os.rename(draft, folder)
        return Run(folder)


def _copy(source: Path, folder: Path) -> None:
    """Copy what a run has learned and shown so far."""
    for name in ("events.jsonl", "probe.json", "probe.safetensors"):
        if (source / name).exists():
            shutil.copyfile(source / name, folder / name)
    for name in ("snapshots", "checkpoints/last", "checkpoints/best"):
        if (source / name).is_dir():
            shutil.copytree(source / name, folder / name, dirs_exist_ok=True)
    if (source / "best.json").exists():
        shutil.copyfile(source / "best.json", folder / "best.json")


def _deleter(folder: Path) -> object:
    """Return the hash of who deleted a run; None where that was not noted."""
    return (read_json(folder / _DELETED) or {}).get("by")


def _folders(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            return [Path(e.path) for e in entries if ID.fullmatch(e.name) and e.is_dir()]
    except OSError:
        return []


def _new_id() -> str:
    # letters and digits only: a leading "-" would read as an option on a command line, and
    # Streamlit's components refuse a key that holds "__"
    return "".join(secrets.choice(_LETTERS) for _ in range(_ID_LENGTH))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _clean(name: str) -> str:
    """Return a name in one line. Raises ValueError where nothing is left of it."""
    words = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if not words:
        raise StudentError("A run needs a name; give it at least one letter.")
    if len(words) > MAX_NAME:
        raise StudentError(
            "A name has at most {max_name} characters; this one has {n_words}.",
            max_name=MAX_NAME,
            n_words=len(words),
        )
    return words
