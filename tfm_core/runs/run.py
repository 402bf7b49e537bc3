"""A run: one folder with an experiment, what happened, and what it looked like inside.

Reading a run needs no torch; only its worker writes in its folder.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from safetensors import SafetensorError, safe_open

from tfm_core.config import ConfigError, Experiment, from_json
from tfm_core.probe.types import Probe, Snapshot
from tfm_core.runs import claim, requests, snapshots, tickets
from tfm_core.runs.atomic import read_json, write_json
from tfm_core.runs.curves import Curves, EventReader
from tfm_core.runs.failures import told
from tfm_core.runs.requests import RequestKind
from tfm_core.runs.status import Status, read_status, write_status
from tfm_core.sentences import N_, StudentError


class RunDamaged(StudentError):
    """A file of a run is missing or cannot be understood."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known of a run beside its experiment; ``created`` is ISO 8601, UTC.

    ``parent`` is the id of the run that this one goes on from, ``recorded`` marks the runs that
    come with the app and cannot be changed. ``owner`` is the hash of the token of the browser that
    began it (see ``owners``), None for a run that the command line began.
    """

    name: str
    created: str
    device: str = "cpu"
    threads: int = 1
    preset: str | None = None
    recorded: bool = False
    parent: str | None = None
    owner: str | None = None


class Run:
    """A run's folder. Cheap to make; everything is read when it is asked for."""

    def __init__(self, folder: Path, *, recorded: bool = False) -> None:
        """Point at a folder, which need not be whole."""
        self.folder = folder
        self._recorded = recorded

    def __repr__(self) -> str:
        """Return where it lies."""
        return f"Run({str(self.folder)!r})"

    @property
    def id(self) -> str:
        """The name of the folder: letters, digits, ``_`` and ``-``."""
        return self.folder.name

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment. Raises RunDamaged, in a sentence, where it cannot be read."""
        try:
            return from_json((self.folder / "experiment.json").read_bytes())
        except FileNotFoundError:
            raise RunDamaged("The file experiment.json of this run is missing.") from None
        except OSError as error:
            raise RunDamaged(
                "The file experiment.json of this run cannot be read: {strerror}.",
                strerror=error.strerror,
            ) from None
        except ConfigError as error:
            raise RunDamaged(
                "The experiment of this run is damaged. {error}", error=error
            ) from None

    @property
    def problem(self) -> str | None:
        """What keeps the run from being shown, in a sentence, or None."""
        if not self.folder.is_dir():
            return N_("This run was deleted.")
        try:
            _ = self.experiment
        except RunDamaged as error:
            return error.sentence
        return None

    @cached_property
    def meta(self) -> Meta:
        """Name, time, device and origin; a damaged meta.json is made up for. Never raises."""
        values = read_json(self.folder / "meta.json") or {}
        fallback = Meta(self.id, self._folder_time(), recorded=self._recorded)
        known = {
            field.name: values[field.name]
            for field in dataclasses.fields(Meta)
            if field.name in values
            and isinstance(values[field.name], _META_KINDS[field.name])
            and field.name != "recorded"
        }
        return dataclasses.replace(fallback, **known)

    @property
    def status(self) -> Status:
        """The state as it is now. Never raises."""
        status = read_status(self.folder)
        if status.state == "queued":
            waiting = tickets.waiting(self.folder.parent)
            position = waiting.index(self.id) + 1 if self.id in waiting else None
            return dataclasses.replace(status, queue_position=position)
        return status

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a state of the training to go on from."""
        return self._checkpoint.is_file()

    @property
    def checkpoint_step(self) -> int | None:
        """The step of the last checkpoint, None where there is none that can be read."""
        try:
            with safe_open(self._checkpoint, framework="numpy") as file:
                return int(json.loads(file.metadata()["trainer"])["step"])
        except (OSError, SafetensorError, ValueError, KeyError, TypeError):
            return None

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoints" / "last" / "checkpoint.safetensors"

    def reader(self) -> EventReader:
        """Return a new reader of the events, from the first one on."""
        return EventReader(self.folder / "events.jsonl")

    def curves(self) -> Curves:
        """Return the curves as they are now."""
        curves = Curves()
        curves.extend(self.reader().read())
        return curves

    def snapshot_steps(self) -> list[int]:
        """Return the steps of the snapshots that can be read, ascending."""
        return snapshots.steps(self.folder)

    def snapshot(self, step: int) -> Snapshot:
        """Return the snapshot of a step, not to be changed. Raises ValueError, in a sentence."""
        return snapshots.kept(snapshots.snapshot_path(self.folder, step))

    def probe(self) -> Probe:
        """Return the examples that the snapshots look at. Raises ValueError, in a sentence."""
        return snapshots.read_probe(self.folder)

    def log_tail(self, lines: int = 20) -> list[str]:
        """Return the last lines of the worker's log. Never raises."""
        try:
            with (self.folder / "worker.log").open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - 64 * 1024))
                text = file.read().decode(errors="replace")
        except OSError:
            return []
        return [line for line in text.splitlines() if line.strip()][-lines:]

    @told()
    def request(self, kind: RequestKind) -> None:
        """Ask the worker for something; a waiting run that shall stop leaves the line.

        Raises ValueError, in a sentence, where there is no worker to ask.
        """
        if kind not in requests.KINDS:
            raise StudentError(
                "A run can be asked to {kinds}, not to {kind!r}.",
                kinds=_either(requests.KINDS),
                kind=kind,
            )
        status = self.status
        if status.state == "queued":
            if kind != "stop":
                raise StudentError(
                    "This run is still waiting in the queue; it can only be stopped."
                )
            if self._leave_line():
                return
        elif not status.is_alive:
            raise StudentError(_CANNOT[status.state])
        requests.drop(self.folder, kind)

    def _leave_line(self) -> bool:
        """Stop a waiting run, unless a worker was given it this very moment."""
        try:
            with claim.moment(self.folder):
                if self.status.state != "queued":
                    return False
                reason = N_("Stopped while it waited in the queue.")
                stopped = dataclasses.replace(self.status, state="stopped", reason=reason)
                write_status(self.folder, stopped)
        except claim.RunHeld:
            return False
        tickets.remove(self.folder.parent, self.id)
        return True

    def write_meta(self, meta: Meta) -> None:
        """Replace the name and the like. Raises OSError."""
        write_json(self.folder / "meta.json", dataclasses.asdict(meta))
        self.__dict__.pop("meta", None)

    def _folder_time(self) -> str:
        try:
            seconds = self.folder.stat().st_mtime
        except OSError:
            seconds = 0.0
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


_META_KINDS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "created": str,
    "device": str,
    "threads": int,
    "preset": (str, type(None)),
    "recorded": bool,
    "parent": (str, type(None)),
    "owner": (str, type(None)),
}
_CANNOT = {
    "finished": N_("This run is finished; it can be trained further as a new run."),
    "stopped": N_("This run is stopped; it can be resumed."),
    "failed": N_("This run failed; it can be resumed from its last checkpoint."),
    "interrupted": N_("This run was interrupted; it can be resumed."),
}


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
