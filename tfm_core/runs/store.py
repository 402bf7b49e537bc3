"""The store: all runs of a folder, and the recorded ones that come with the app."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import string
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from tfm_core import settings
from tfm_core.choices.config import Experiment, TunedConfig, to_json
from tfm_core.choices.config.experiment import possible, turned
from tfm_core.data.user_data import sets
from tfm_core.disk import remove, rename, sync_file, sync_folder
from tfm_core.facts.batches import Batches
from tfm_core.reading import is_plain
from tfm_core.runs import labels, snapshots, thinned
from tfm_core.runs.curves import turns_in
from tfm_core.runs.disk import trash
from tfm_core.runs.disk.atomic import read_json, write_bytes, write_json
from tfm_core.runs.disk.failures import os_errors_as_sentences
from tfm_core.runs.disk.trash import DRAFT
from tfm_core.runs.labels import Labels
from tfm_core.runs.run import ID, Checkpoint, Meta, Run
from tfm_core.runs.status import State, Status, write_status
from tfm_core.sentences import N_, StudentError

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "runs"
"""Runs that come with the app: read-only."""
LESSONS = "lessons"
"""The folder in RECORDED with the runs of single lessons, which no list of runs shows."""

_LETTERS = string.ascii_letters + string.digits
_ID_LENGTH = 17  # 101 random bits
_FILES = ("experiment.json", "meta.json", "status.json")  # a damaged run may lack some
_DELETED = "deleted.json"  # in a run's folder: the visitor who deleted it


class Facts(TypedDict, total=False):
    """What a new run's ``Meta`` may say beside name, time, device and threads."""

    preset: str | None
    owner: str | None
    owner_name: str | None
    cure_of: str | None
    is_suspect: bool
    lesson: str | None


class RunNotFound(StudentError):
    """There is no run with this id."""


class RunStore:
    """Runs by id. ``root`` defaults to the environment's TFM_RUNS_DIR, then to ``runs``."""

    def __init__(self, root: Path | None = None, *, recorded: Path | None = RECORDED) -> None:
        """Look at a folder, which is made when the first run is created."""
        chosen = root if root is not None else settings.read().runs_dir
        self.root = Path(chosen).absolute()
        self.recorded = recorded

    @os_errors_as_sentences()
    def create(
        self,
        experiment: Experiment,
        *,
        device: str = "cpu",
        threads: int = 1,
        name: str | None = None,
        group: str | None = None,
        state: State = "queued",
        run_id: str | None = None,
        **facts: Unpack[Facts],
    ) -> Run:
        """Create a run's folder, atomically. Raises ValueError, in a sentence.

        run_id: an id reserved in advance, so that a restarted caller can find the run.
        """
        grouped = labels.clean_group(group)
        name = labels.clean_name(name or experiment.task.facts.label)
        meta = Meta(name, _now(), device, threads, **facts)
        status = Status(state, total_steps=experiment.trained.steps, device=device)

        def write(folder: Path) -> None:
            _write_new(folder, experiment, meta, status)
            _bring_along(experiment, folder)
            if grouped is not None:
                labels.write_labels(folder, Labels(group=grouped))

        return self._add(write, run_id)

    def list(self) -> list[Run]:
        """Return all runs, newest first, the damaged too (see ``Run.problem``). Never raises.

        Behind them stand the recorded ones, in the order in which they were added to the app.
        """
        runs = sorted(self.kept(), key=lambda run: run.meta.created, reverse=True)
        if self.recorded is not None:
            kept = [Run(folder, recorded=True) for folder in _folders(self.recorded)]
            runs += sorted(kept, key=lambda run: run.meta.created)
        return runs

    def lessons(self) -> tuple[Run, ...]:
        """Return the recorded runs that belong to single lessons, oldest first. Never raises."""
        if self.recorded is None:
            return ()
        runs = [Run(folder, recorded=True) for folder in _folders(self.recorded / LESSONS)]
        return tuple(sorted(runs, key=lambda run: run.meta.created))

    def n_active(self, owner: str) -> int:
        """Return how many of an owner's runs train or wait. Never raises."""
        return sum(run.meta.owner == owner and run.status.is_active for run in self.kept())

    def kept(self) -> tuple[Run, ...]:
        """Return the runs that are not recorded, in no order. Never raises."""
        return tuple(Run(folder) for folder in _folders(self.root))

    def get(self, run_id: str) -> Run:
        """Return the run with an id. Raises RunNotFound, in a sentence."""
        if not isinstance(run_id, str) or not ID.fullmatch(run_id):
            raise RunNotFound("A run id has 8 to 64 letters, digits, _ and -.")
        if _is_run(self.root / run_id):
            return Run(self.root / run_id)
        if self.recorded is not None:
            for folder in (self.recorded / run_id, self.recorded / LESSONS / run_id):
                if _is_run(folder):
                    return Run(folder, recorded=True)
        raise RunNotFound("There is no run {run_id}.", run_id=run_id)

    @os_errors_as_sentences()
    def rename(self, run_id: str, name: str) -> Run:
        """Rename a run. Raises ValueError, in a sentence."""
        run = self._mine(run_id)
        run.write_labels(dataclasses.replace(run.labels, name=labels.clean_name(name)))
        return run

    @os_errors_as_sentences()
    def label(
        self,
        run_id: str,
        *,
        name: str | None = None,
        tags: Iterable[str] | None = None,
        note: str | None = None,
        group: str | None = None,
    ) -> Run:
        """Set a run's name, tags, note or group; None keeps it, "" removes it.

        Raises ValueError, in a sentence; then nothing is changed.
        """
        run = self._mine(run_id)
        old = run.labels
        run.write_labels(
            Labels(
                old.name if name is None else labels.clean_name(name),
                old.tags if tags is None else labels.clean_tags(tags),
                old.note if note is None else labels.clean_note(note),
                old.group if group is None else labels.clean_group(group),
            )
        )
        return run

    @os_errors_as_sentences()
    def delete(self, run_id: str, *, by: str | None = None) -> None:
        """Move a run to the trash; ``undelete`` restores it. Raises ValueError.

        by: the hash of the visitor's token, for ``deleted_by``.
        """
        run = self._mine(run_id)
        waited = run.status.state == "queued"
        if waited:
            run.request("stop")
        if run.status.is_alive:
            raise StudentError("This run is training. Stop it first.")
        with contextlib.suppress(OSError):  # a full disk: then nobody else can restore it
            write_json(run.folder / _DELETED, {"by": by, "waited": waited})
        trash.put(self.root, run.id)

    def discard(self, run: Run) -> None:
        """Remove a run that never started for good. Never raises."""
        trash.remove(run.folder)

    def deleted_by(self, owner: str) -> tuple[Run, ...]:
        """Return the runs that a visitor deleted and may restore, newest first. Never raises."""
        newest = reversed(trash.deleted(self.root))
        return tuple(Run(deleted.folder) for deleted in newest if _deleter(deleted.folder) == owner)

    def waited(self, run_id: str) -> bool:
        """Return whether a deleted run was waiting when it was deleted. Never raises."""
        if not ID.fullmatch(run_id):
            return False
        return _noted(self.root / trash.FOLDER / run_id).get("waited") is True

    def restorable_until(self, run_id: str) -> float | None:
        """Return until when (Unix time) a deleted run can be restored, or None. Never raises.

        Sooner, if the host's limit needs its space.
        """
        return trash.expires_at(self.root, run_id) if ID.fullmatch(run_id) else None

    def empty_trash(self) -> None:
        """Remove all deleted runs for good. Never raises."""
        trash.empty(self.root)

    @os_errors_as_sentences()
    def undelete(self, run_id: str, *, by: str | None = None) -> Run:
        """Restore a run from the trash. Raises ValueError, in a sentence.

        by: only if this visitor deleted it.
        """
        is_theirs = ID.fullmatch(run_id) is not None and (
            by is None or _deleter(self.root / trash.FOLDER / run_id) == by
        )
        if not is_theirs or not trash.restore(self.root, run_id):
            raise RunNotFound("There is no deleted run {run_id} to restore.", run_id=run_id)
        remove(self.root / run_id / _DELETED)
        return self.get(run_id)

    @os_errors_as_sentences()
    def fork(
        self,
        run_id: str,
        *,
        steps: int,
        device: str | None = None,
        stays_low: bool = False,
        owner: str | None = None,
        owner_name: str | None = None,
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
            raise StudentError("This run hasn't ended. Stop it first.")
        if not parent.has_checkpoint:
            raise StudentError("This run has no checkpoint.")
        done = status.step if (step := parent.checkpoint_step) is None else step
        if steps <= done:
            raise StudentError("This run has already done {done:,} steps. Choose more.", done=done)
        old = parent.experiment
        if stays_low:  # from the rate it had at its end, which no turn may change again
            old = turned(old, possible(old, turns_in(parent.folder / "events.jsonl")))
        training = old.trained.further(steps, stays_low=stays_low)
        if status.state == "finished" and done < old.trained.steps:
            # early stopping ended it: the copy would stop at once
            training = training.replace(patience=0)
        experiment = old.replace(training=training.model_dump())
        before = parent.meta.device
        device = device or ("cpu" if parent.meta.recorded else before)
        meta = dataclasses.replace(
            parent.meta,
            device=device,
            owner=owner,
            owner_name=owner_name,
            cure_of=None,
            cured_from=0,
            begun_on=parent.meta.begun_on or (None if device == before else before),
        )
        return self._branch(parent, experiment, meta, done, turns_until=-1 if stays_low else None)

    @os_errors_as_sentences()
    def cure(
        self,
        run_id: str,
        experiment: Experiment,
        *,
        begins: Literal["best", "last"],
        name: str | None = None,
        owner: str | None = None,
        owner_name: str | None = None,
    ) -> Run:
        """Copy a sick run, which may still train, to resume with other settings from a checkpoint.

        experiment: with the same model, but for what has no weights. begins: at the checkpoint of
        the lowest validation loss, or at the newest. The copy goes on through the queue's
        ``resume``. Raises ValueError, in a sentence, where there is no such checkpoint.
        """
        parent = self.get(run_id)
        done = parent.step_of_checkpoint(begins)
        if done is None:
            raise StudentError("This run has no checkpoint.")
        meta = _copied_meta(parent, name, owner, owner_name)
        meta = dataclasses.replace(meta, cure_of=parent.id, cured_from=done)
        return self._branch(parent, experiment, meta, done, begins, turns_until=-1)

    @os_errors_as_sentences()
    def branch(
        self,
        run_id: str,
        *,
        name: str | None = None,
        owner: str | None = None,
        owner_name: str | None = None,
    ) -> Run:
        """Copy a run as it was before its last turn, to train on without that turn.

        The run may still train. The copy goes on through the queue's ``resume``. Raises ValueError,
        in a sentence, for a run without a turn.
        """
        parent = self.get(run_id)
        done = parent.step_of_checkpoint("turn")
        if done is None:
            raise StudentError("No setting of this run was changed while it trained.")
        meta = _copied_meta(parent, name, owner, owner_name)
        return self._branch(parent, parent.experiment, meta, done, "turn", turns_until=done)

    def _branch(
        self,
        parent: Run,
        experiment: Experiment,
        meta: Meta,
        done: int,
        begins: Checkpoint = "last",
        *,
        turns_until: int | None = None,
    ) -> Run:
        """Make a run that continues another from step ``done``, one of its checkpoints.

        It follows the parent's turns up to a step, or all.
        """
        meta = dataclasses.replace(
            meta, created=_now(), recorded=False, parent=parent.id, lesson=None
        )
        status = parent.status
        is_behind, whole = done < status.step, Batches.of_experiment(parent.experiment).whole
        stopped = Status(
            "stopped",
            step=done,
            total_steps=experiment.trained.steps,
            epoch=status.epoch * whole(done) / whole(status.step) if is_behind else status.epoch,
            device=meta.device,
            reason=N_("Continues “{name}” from step {done:,}.", done=done, name=parent.meta.name),
            seconds=status.seconds,
            parent_seconds=status.seconds,
        )

        def write(folder: Path) -> None:
            _write_new(folder, experiment, meta, stopped)
            _bring_along(experiment, folder)
            _copy(parent.folder, folder, begins)
            if turns_until is not None:
                with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"event": "branched", "step": turns_until}) + "\n")

        return self._add(write)

    @os_errors_as_sentences()
    def bring(
        self,
        experiment: Experiment,
        status: Status,
        fill: Callable[[Path], None],
        *,
        name: str,
        threads: int = 1,
        **facts: Unpack[Facts],
    ) -> Run:
        """Import a run trained elsewhere, atomically; it resumes on the CPU.

        status: of a run that is over. fill: writes the rest of the run into a folder that no list
        shows yet; where it raises, nothing is left. Raises ValueError, in a sentence.
        """
        meta = Meta(labels.clean_name(name), _now(), threads=threads, **facts)

        def write(folder: Path) -> None:
            _write_new(folder, experiment, meta, status)
            fill(folder)

        return self._add(write)

    def _mine(self, run_id: str) -> Run:
        run = self.get(run_id)
        if run.meta.recorded:
            raise StudentError("This run comes with the app and cannot be changed.")
        return run

    def _add(self, write: Callable[[Path], None], run_id: str | None = None) -> Run:
        """Create a run in a folder that lists show once ``write`` has filled it."""
        self.root.mkdir(parents=True, exist_ok=True)
        name = run_id or new_id()
        draft = self.root / f"{DRAFT}{name}"

        try:
            write(draft)
        except BaseException:  # on a full disk a partial run would take space
            shutil.rmtree(draft, ignore_errors=True)
            raise
        rename(draft, self.root / name)
        sync_folder(self.root)
        return Run(self.root / name)


def _write_new(folder: Path, experiment: Experiment, meta: Meta, status: Status) -> None:
    """Write the initial files of a run."""
    for part in ("snapshots", "checkpoints", "requests"):
        (folder / part).mkdir(parents=True)
    write_bytes(folder / "experiment.json", to_json(experiment).encode(), lasting=True)
    write_json(folder / "meta.json", dataclasses.asdict(meta), lasting=True)
    write_status(folder, status)


def _bring_along(experiment: Experiment, folder: Path) -> None:
    """Give a new run the first weights and the tokenizer that it needs. Raises ValueError."""
    if isinstance(experiment.task, TunedConfig):
        from tfm_core.pretrained import base  # with torch

        with sets.below(folder.parent):
            base.bring_along(experiment.task, folder)


def _copied_meta(parent: Run, name: str | None, owner: str | None, owner_name: str | None) -> Meta:
    """Return the facts of a copy with other settings; a recorded run's goes to the CPU."""
    return dataclasses.replace(
        parent.meta,
        name=labels.clean_name(name or parent.meta.name),
        preset=None,
        device="cpu" if parent.meta.recorded else parent.meta.device,
        owner=owner,
        owner_name=owner_name,
        cure_of=None,
        cured_from=0,
    )


def _copy(source: Path, folder: Path, begins: Checkpoint = "last") -> None:
    """Copy a run's results so far, plain files only.

    begins: the checkpoint that becomes the copy's last.
    """
    names = ["events.jsonl", thinned.FILE, "probe.json", "probe.safetensors"]
    pairs = [(source / name, folder / name) for name in names]
    folders = [(name, name) for name in ("snapshots", snapshots.WEIGHTS)]
    folders.append((f"checkpoints/{begins}", "checkpoints/last"))
    if begins != "turn":  # the best may be of a later step
        folders.append(("checkpoints/best", "checkpoints/best"))
        pairs.append((source / "best.json", folder / "best.json"))
    for name, target in folders:
        if os.path.isdir(source / name):
            pairs += [(path, folder / target / path.name) for path in (source / name).iterdir()]
    for path, copy in pairs:
        if is_plain(path):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    for path in folder.rglob("*"):
        sync_folder(path) if path.is_dir() else sync_file(path)


def _deleter(folder: Path) -> object:
    """Return the hash of the visitor who deleted a run, or None."""
    return _noted(folder).get("by")


def _noted(folder: Path) -> dict[str, Any]:
    return read_json(folder / _DELETED) or {}


def _folders(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            folders = [Path(entry.path) for entry in entries if ID.fullmatch(entry.name)]
    except OSError:
        return []
    return [folder for folder in folders if _is_run(folder)]


def _is_run(folder: Path) -> bool:
    """Return whether a folder holds a file of a run; one that cannot be read may be a run."""

    def is_there(name: str) -> bool:
        try:
            os.lstat(folder / name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    return any(map(is_there, _FILES))


def new_id() -> str:
    """Return a new random id."""
    # letters and digits only: a leading "-" would read as an option on a command line, and
    # Streamlit's components refuse a key that holds "__"
    return "".join(secrets.choice(_LETTERS) for _ in range(_ID_LENGTH))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
