"""A run: one folder with an experiment, what happened, and what it looked like inside.

Reading a run needs no torch; only its worker writes in its folder.
"""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StrictBool

from tfm_core.choices.config import ConfigError, Experiment, from_json
from tfm_core.choices.presets import PRESETS
from tfm_core.data.user_data import sets
from tfm_core.probe.form import SnapshotForm, form_of
from tfm_core.probe.types import Array, Probe, Snapshot
from tfm_core.reading import Unreadable, content_of, is_plain, object_of, open_plain, open_tensors
from tfm_core.runs import labels, snapshots
from tfm_core.runs.curves import Curves, EventReader
from tfm_core.runs.disk.atomic import CachedReader, write_json
from tfm_core.runs.disk.failures import os_errors_as_sentences
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.labels import MAX_NAME, Labels, Origin
from tfm_core.runs.outcome import Outcome, outcome_of
from tfm_core.runs.process import requests
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.status import State, Status, read_status, write_status
from tfm_core.runs.thinned import ThinnedReader
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError
from tfm_core.stored import Device, Moment, Step, Stored, line, matching, unstored, whole
from tfm_core.training.checkpoint_facts import facts_of

ID = re.compile(rf"(?!{sets.FOLDER}$)[A-Za-z0-9_-]{{8,64}}")  # that folder is no run
LESSON_ID = re.compile(r"[a-z0-9][a-z0-9-]{1,39}", re.ASCII)
Checkpoint = Literal["last", "best", "turn"]
"""The newest, that of the lowest validation loss so far, and that before the last turn."""
_Name = Annotated[str, line(MAX_NAME)]
_Id = Annotated[str, matching(ID)]
_Lesson = Annotated[str, matching(LESSON_ID)]
_Owner = Annotated[str, matching(re.compile(r"[0-9a-f]{64}"))]


_TAIL = 2**16
"""Bytes of the events in which the last step is looked for."""


@lru_cache(maxsize=1024)
def _last_step(folder: Path, _changed: int, size: int) -> int | None:
    """Return the newest step in the events of a run; None where their end has none."""
    found = EventReader(folder / "events.jsonl", max(0, size - _TAIL)).read()
    steps = [
        record["step"]
        for record in found
        if record["event"] in ("step", "resumed") and "step" in record
    ]
    return max(0, steps[-1]) if steps else None


class RunDamaged(StudentError):
    """A file of a run is missing or cannot be understood."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known of a run beside its experiment; ``created`` is ISO 8601, UTC.

    ``parent`` is the id of the run that this one goes on from, ``cure_of`` that of the sick run
    whose cure it is, from step ``cured_from`` on; ``recorded`` marks the runs that come with the
    app and cannot be changed. ``owner`` is the hash of the token of the browser that
    began it (see ``auth``), or of the person ``owner_name`` who was logged in; None for a run that
    the command line began. ``begun_on`` is the device of its first steps, where it went on on
    another one. ``is_suspect`` marks a run whose settings hide a bug to be found. ``lesson`` is the
    lesson that it was started in, whose locked settings it has.
    """

    name: _Name
    created: Moment
    device: Device = "cpu"
    threads: Annotated[int, whole(1, 1024)] = 1
    preset: _Name | None = None
    recorded: Annotated[bool, unstored(False)] = False
    parent: _Id | None = None
    owner: _Owner | None = None
    owner_name: _Name | None = None
    cure_of: _Id | None = None
    cured_from: Step = 0
    begun_on: Device | None = None
    is_suspect: StrictBool = False
    lesson: _Lesson | None = None


class Run:
    """A run's folder. Cheap to make; everything is read on demand."""

    def __init__(self, folder: Path, *, recorded: bool = False) -> None:
        """Point at a folder, which need not be whole."""
        self.folder = folder
        self._recorded = recorded
        self._known_form: tuple[int, SnapshotForm] | None = None

    def __repr__(self) -> str:
        """Return where it lies."""
        return f"Run({str(self.folder)!r})"

    @property
    def id(self) -> str:
        """The name of the folder: letters, digits, ``_`` and ``-``."""
        return self.folder.name

    @property
    def experiment(self) -> Experiment:
        """The experiment. Raises RunDamaged, in a sentence, where it cannot be read."""
        found = self._read_experiment
        if isinstance(found, Experiment):
            return found
        raise RunDamaged(found)

    @cached_property
    def _read_experiment(self) -> Experiment | str:
        """Return the experiment, or a sentence on what keeps it from being read."""
        try:
            return _EXPERIMENTS.of(self.folder, "experiment.json")
        except FileNotFoundError:
            return _damaged(N_("experiment.json is missing"))
        except Unreadable as error:
            return _damaged(error.sentence)
        except ConfigError as error:
            return N_(
                "This run is damaged: experiment.json is not valid. {why}", why=error.sentence
            )

    @property
    def problem(self) -> str | None:
        """What keeps the run from being shown, in a sentence, or None."""
        if not os.path.isdir(self.folder):
            return N_("This run was deleted.")
        found = self._read_experiment
        return None if isinstance(found, Experiment) else found

    @property
    def meta(self) -> Meta:
        """Name, time, device and origin; a damaged meta.json is made up for. Never raises.

        The name is what a person called the run, else the one that it was begun with.
        """
        return self._read_meta[0]

    @cached_property
    def origin(self) -> Origin | None:
        """Where it was trained, for a run that was brought from elsewhere. Never raises."""
        return labels.read_origin(self.folder)

    @property
    def labels(self) -> Labels:
        """Name, tags, note and group as a person gave them. Never raises."""
        return self._read_labels[0]

    @property
    def is_named(self) -> bool:
        """Whether a person chose its name; else it is called after its preset or its task."""
        if self.labels.name is not None:
            return True
        meta = self.meta
        given = {PRESETS[meta.preset].label} if meta.preset in PRESETS else set[str]()
        if self.problem is None:
            given.add(self.experiment.task.facts.label)
        return meta.name not in given

    @cached_property
    def _read_labels(self) -> tuple[Labels, str | None]:
        return _LABELS.of(self.folder, labels.LABELS_FILE)

    @property
    def damage(self) -> str | None:
        """What of its experiment, meta.json or labels.json is damaged, in a sentence, or None.

        A run whose meta.json is damaged can be shown all the same, under a name that is made up.
        """
        if self.problem or self._read_meta[1]:
            return self.problem or self._read_meta[1]
        clause = self._read_labels[1]
        return None if clause is None else _made_up(clause)

    @cached_property
    def _read_meta(self) -> tuple[Meta, str | None]:
        """Return what meta.json says, with the rest made up, and a sentence on that."""
        try:
            meta, clause = _METAS.of(self.folder, "meta.json")
        except FileNotFoundError:
            meta, clause = Meta(**_meta_of_folder(self.folder)), N_("meta.json is missing")
        except Unreadable as error:
            meta, clause = Meta(**_meta_of_folder(self.folder)), error.sentence
        name = meta.name if self.labels.name is None else self.labels.name
        if self._recorded:  # its name is a sentence of the app
            name = Sentence(name)
        meta = dataclasses.replace(meta, name=name, recorded=self._recorded)
        return meta, None if clause is None else _made_up(clause)

    @property
    def status(self) -> Status:
        """The state as it is now. Never raises."""
        status = read_status(self.folder)
        if not status.total_steps and self.problem is None:  # a damaged status.json says none
            if (training := self.experiment.training) is not None:
                total = training.steps
            elif status.state == "opened":
                total = 0
            else:  # the steps that a loop of another program announced, at least those done
                announced = int(self.thinned_curves().started.get("total_steps", 0))
                total = max(status.step, announced)
            status = dataclasses.replace(status, total_steps=total, step=min(status.step, total))
        if status.state == "queued":
            waiting = waiting_line.ids(self.folder.parent)
            position = waiting.index(self.id) + 1 if self.id in waiting else None
            return dataclasses.replace(status, queue_position=position)
        return self._at_last_step(status) if status.state == "interrupted" else status

    def _at_last_step(self, status: Status) -> Status:
        """Return a status with the last step in the curves, which may be missing in the status."""
        try:
            events = (self.folder / "events.jsonl").stat()
        except OSError:
            return status
        step = _last_step(self.folder, events.st_mtime_ns, events.st_size)
        if step is None:
            return status
        reason = status.reason
        if isinstance(reason, Sentence) and "step" in reason.values:
            reason = Sentence(reason.template, {**reason.values, "step": step})
        total = max(status.total_steps, step)  # a loop need not know where it ends
        return dataclasses.replace(status, step=step, total_steps=total, reason=reason)

    @property
    def can_resume(self) -> bool:
        """Whether it ended early and can be resumed here."""
        is_ours = self.problem is not None or self.experiment.training is not None
        return is_ours and self.status.can_resume

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a checkpoint to resume from."""
        return is_plain(self._checkpoint)

    @property
    def checkpoint_step(self) -> int | None:
        """The step of the last checkpoint, or None without a readable one."""
        return self.step_of_checkpoint("last")

    def step_of_checkpoint(self, which: Checkpoint) -> int | None:
        """Return the step of a checkpoint, or None without a readable one."""
        path = self.folder / "checkpoints" / which / "checkpoint.safetensors"
        try:
            with open_tensors(path) as file:
                return facts_of(file.metadata()).step
        except (FileNotFoundError, Unreadable):
            return None

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoints" / "last" / "checkpoint.safetensors"

    def reader(self) -> EventReader:
        """Return a new reader of the events, from the first one on."""
        return EventReader(self.folder / "events.jsonl")

    def curves(self) -> Curves:
        """Return the curves as they are now, with every step that was written down."""
        curves = Curves()
        for records in self.reader().batches():
            curves.extend(records)
        return curves

    def thinned_curves(self) -> Curves:
        """Return the curves as they are now, of a long run with fewer steps; see ``thinned``."""
        return ThinnedReader(self.folder).read()

    @property
    def outcome(self) -> Outcome | None:
        """Why a run that ended has learned nothing, with its numbers; None for every other run.

        It reads the curves, once for each time that they changed. Never raises.
        """
        status = self.status
        if status.state not in {"finished", "failed"}:
            return None
        try:
            facts = (self.folder / "events.jsonl").lstat()
        except OSError:
            return outcome_of(status, Curves())
        return _outcome(self.folder, status.state, status.reason, status.device, facts.st_mtime_ns)

    def snapshot_steps(self) -> list[int]:
        """Return the steps of the snapshots that can be read, ascending."""
        return snapshots.snapshot_steps(self.folder)

    def weight_steps(self) -> list[int]:
        """Return the steps with stored weights, ascending; large models store none."""
        return snapshots.weight_steps(self.folder)

    def weights(self, step: int) -> dict[str, Array]:
        """Return the weights of a step by name, float16. Raises ValueError, in a sentence."""
        return snapshots.read_weights(self.folder, step)

    def snapshot(self, step: int) -> Snapshot:
        """Return the snapshot of a step, not to be changed. Raises ValueError, in a sentence."""
        return snapshots.cached_snapshot(snapshots.snapshot_path(self.folder, step), self._form)

    @property
    def _form(self) -> SnapshotForm:
        """What a snapshot of this run must look like; without a probe, as far as can be known."""
        try:
            changed = (self.folder / "probe.json").stat().st_mtime_ns
        except OSError:
            changed = 0
        if self._known_form is None or self._known_form[0] != changed:  # a worker rewrote it
            try:
                form = _form_with_probe(self.folder, changed, self.experiment)
            except RunDamaged:
                raise
            except StudentError:
                form = form_of(self.experiment, None)
            self._known_form = changed, form
        return self._known_form[1]

    def probe(self) -> Probe:
        """Return the examples that the snapshots look at. Raises ValueError, in a sentence."""
        return snapshots.read_probe(self.folder, self.experiment)

    def log_tail(self, lines: int = 20) -> list[str]:
        """Return the last lines of the worker's log. Never raises."""
        try:
            with os.fdopen(open_plain(self.folder / "worker.log"), "rb") as file:
                file.seek(max(0, file.seek(0, 2) - 64 * 1024))
                text = file.read().decode(errors="replace")
        except (OSError, Unreadable):
            return []
        return [line for line in text.splitlines() if line.strip()][-lines:]

    @os_errors_as_sentences()
    def request(self, kind: str) -> None:
        """Ask the worker for something; a waiting run that shall stop leaves the line.

        kind: one of ``requests.KINDS``, or a result of ``requests.turning``.

        Raises ValueError, in a sentence, where there is no worker to ask.
        """
        if not requests.is_request(kind):
            raise StudentError(
                "{kind!r} isn't a request. Use one of {kinds}.",
                kinds=", ".join(requests.KINDS),
                kind=kind,
            )
        status = self.status
        if status.state == "queued":
            if kind != "stop":
                raise StudentError("This run is in the queue. You can only stop it.")
            if self._leave_line():
                return
        elif not status.is_alive:
            raise StudentError(_CANNOT[status.state])
        elif self.experiment.training is None:
            raise StudentError(Paragraph("pretrained/foreign-steering"))
        requests.drop(self.folder, kind)

    def _leave_line(self) -> bool:
        """Stop a waiting run, unless a worker was given it this very moment."""
        try:
            with RunLock(self.folder):
                if self.status.state != "queued":
                    return False
                reason = N_("Stopped in the queue.")
                stopped = dataclasses.replace(self.status, state="stopped", reason=reason)
                write_status(self.folder, stopped)
        except RunLocked:
            return False
        waiting_line.leave(self.folder.parent, self.id)
        return True

    def write_meta(self, meta: Meta) -> None:
        """Replace the name and the like. Raises OSError."""
        write_json(self.folder / "meta.json", dataclasses.asdict(meta))
        self.__dict__.pop("_read_meta", None)

    def move_to(self, device: str) -> None:
        """Move the run to another device; only its meta.json changes.

        The caller holds the run. Raises OSError, and RunDamaged where meta.json cannot be read.
        """
        meta, damage = self._read_meta
        if device == meta.device:
            return
        if damage is not None:
            raise RunDamaged(damage)
        values = object_of(self.folder / "meta.json", most=_MAX_META)
        begun_on = meta.begun_on or (meta.device if self.has_checkpoint else None)
        moved = {"device": device, "begun_on": begun_on}
        write_json(self.folder / "meta.json", values | moved, lasting=True)
        self.__dict__.pop("_read_meta", None)

    def write_labels(self, given: Labels) -> None:
        """Replace name, tags, note and group. Raises OSError."""
        labels.write_labels(self.folder, given)
        for known in ("_read_labels", "_read_meta"):
            self.__dict__.pop(known, None)


@lru_cache(maxsize=512)
def _form_with_probe(folder: Path, _changed: int, experiment: Experiment) -> SnapshotForm:
    """Return the form of a run's snapshots; every page and thread has its own ``Run`` of a folder.

    Raises ValueError, in a sentence, without a probe that can be read.
    """
    return form_of(experiment, snapshots.read_probe(folder, experiment))


@lru_cache(maxsize=2048)
def _outcome(
    folder: Path, state: State, reason: str | None, device: str, _changed: int
) -> Outcome | None:
    status = Status(state, reason=reason, device=device)
    return outcome_of(status, Run(folder).thinned_curves())


def _made_up(what: str) -> str:
    return N_("This run is damaged ({what}); defaults replace what is missing.", what=what)


def _damaged(what: str) -> str:
    return N_("This run is damaged ({what}).", what=what)


_MAX_EXPERIMENT, _MAX_META = 2**24, 2**16


def _meta_in(path: Path) -> tuple[Meta, str | None]:
    """Return what a meta.json says, the rest made up, and a clause on the first damaged value."""
    values = object_of(path, most=_MAX_META)
    return _STORED.salvage(values, lambda: _meta_of_folder(path.parent))


def _meta_of_folder(folder: Path) -> dict[str, Any]:
    """Return the name and the time of a run that its meta.json does not say."""
    try:
        moment = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):  # gone, or with an invalid time
        moment = datetime.fromtimestamp(0, UTC)
    return {"name": folder.name, "created": moment.isoformat(timespec="milliseconds")}


_STORED = Stored(Meta, "meta.json")
_EXPERIMENTS = CachedReader(lambda path: from_json(content_of(path, most=_MAX_EXPERIMENT)))
_METAS = CachedReader(_meta_in)
_LABELS = CachedReader(lambda path: labels.read_labels(path.parent))
_CANNOT = {
    "finished": N_("This run is finished. Train a copy further."),
    "stopped": N_("This run is stopped. You can resume it."),
    "failed": N_("This run failed. You can resume it from its last checkpoint."),
    "interrupted": N_("This run was interrupted. You can resume it."),
    "opened": Paragraph("pretrained/not-trained"),
}
