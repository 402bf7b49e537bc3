"""The state of a run: what ``status.json`` says, and what can be concluded from it."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, get_args

from tfm_core.reading import MAX_STEP_NUMBER, Unreadable, object_of
from tfm_core.runs.disk.atomic import CachedReader, write_json
from tfm_core.runs.disk.failures import obstacle
from tfm_core.runs.process.identity import ProcessId, is_alive, seconds_since_heartbeat
from tfm_core.sentences import N_, Sentence, joined
from tfm_core.stored import Device, Step, Stored, WrongValue, line, number, text, unstored, whole

State = Literal[
    "queued",
    "starting",
    "running",
    "paused",
    "finished",
    "stopped",
    "failed",
    "interrupted",
    "opened",
]
"""``interrupted`` is never written: it is the state of a run whose worker is gone. ``opened`` is
that of a model that was trained elsewhere."""

STATES: tuple[State, ...] = get_args(State)
ALIVE: frozenset[str] = frozenset({"starting", "running", "paused"})
"""States in which a worker holds the run."""

RESUMABLE: frozenset[str] = frozenset({"stopped", "failed", "interrupted"})

SILENT_SECONDS = 10.0
"""A worker that lives but was not heard of for so long is suspended, or its machine is."""

_Seconds = Annotated[float, number(0, 1e11)]  # as Unix time, up to a thousand years from now
_Host = Annotated[str, line(255)]


@dataclass(frozen=True, slots=True)
class Status:
    """Where a run stands. ``seconds`` is the time trained so far, ``heartbeat`` is Unix time.

    ``parent_seconds`` of the time were trained by the run that this one goes on from.
    ``uptime`` is the heartbeat by the clock that runs from the machine's start and is never set.
    ``queue_position`` counts from 1 and is None unless the run waits in a queue. ``silent`` is for
    how many seconds a living worker was not heard of.
    """

    state: State
    step: Step = 0
    total_steps: Step = 0
    epoch: Annotated[float, number(0, MAX_STEP_NUMBER)] = 0.0
    device: Device = "cpu"
    pid: Annotated[int, whole(1, 2**32 - 1)] | None = None
    host: _Host | None = None
    created: _Seconds | None = None
    started: _Host | None = None
    heartbeat: _Seconds | None = None
    uptime: _Seconds | None = None
    reason: Annotated[str, text(100_000)] | None = None
    seconds: _Seconds = 0.0
    parent_seconds: _Seconds = 0.0
    queue_position: Annotated[int | None, unstored(None)] = None
    silent: Annotated[float, unstored(0.0)] = field(default=0.0, compare=False)

    @property
    def is_alive(self) -> bool:
        """Whether a worker holds the run: starting, running or paused."""
        return self.state in ALIVE

    @property
    def is_active(self) -> bool:
        """Whether the run will change without anyone's doing: worth looking at again soon."""
        return self.state in ALIVE or self.state == "queued"

    @property
    def can_resume(self) -> bool:
        """Whether the run ended early and can be resumed."""
        return self.state in RESUMABLE

    @property
    def progress(self) -> float:
        """Share of the steps that are done, 0 to 1."""
        return min(1.0, self.step / self.total_steps) if self.total_steps else 0.0

    @property
    def mark(self) -> ProcessId | None:
        """The process that trains the run, or trained it last."""
        if self.pid is None or self.host is None:
            return None
        return ProcessId(self.pid, self.host, self.created, self.started)

    @property
    def is_silent(self) -> bool:
        """Whether a worker that lives was not heard of for a while."""
        return self.silent >= SILENT_SECONDS

    def with_process(self, mark: ProcessId) -> Status:
        """Return the status of the run in the hands of a process."""
        return dataclasses.replace(
            self,
            pid=mark.pid,
            host=mark.host,
            created=mark.created,
            started=mark.started,
            queue_position=None,
        )


def write_status(folder: Path, status: Status, *, lasting: bool = True) -> None:
    """Replace ``status.json``; lasting: it survives a power cut. Raises OSError."""
    values = dataclasses.asdict(status)
    del values["queue_position"], values["silent"]  # known by the queue's folder and the reader
    if isinstance(status.reason, Sentence) and status.reason.values:
        plain = {
            name: value if isinstance(value, int | float) else str(value)
            for name, value in status.reason.values.items()
        }
        values["reason_parts"] = {"template": status.reason.template, "values": plain}
    write_json(folder / "status.json", values, lasting=lasting)


def read_status(folder: Path) -> Status:
    """Return the state as it is now; a dead worker makes it ``interrupted``. Never raises."""
    try:
        status = _STATUSES.of(folder, "status.json")
    except FileNotFoundError:
        return _damaged(N_("status.json is missing"))
    except Unreadable as error:
        return _damaged(error.sentence)
    if not status.is_alive:
        return status
    mark = status.mark
    if mark is not None and is_alive(mark, heartbeat=status.heartbeat):
        silent = seconds_since_heartbeat(mark, status.heartbeat, status.uptime)
        return dataclasses.replace(status, silent=silent)
    return dataclasses.replace(
        status, state="interrupted", reason=_unexplained(folder, status.step)
    )


def _unexplained(folder: Path, step: int) -> str:
    """Return what can be known of a process that ended without a word, in a sentence."""
    hindrance = obstacle(folder)
    if hindrance is not None:
        return joined(
            N_("The process ended at step {step:,}. Its folder can't be written.", step=step),
            hindrance,
        )
    return N_(
        "The process ended at step {step:,}: it was killed, ran out of memory or was restarted.",
        step=step,
    )


def _damaged(what: str) -> Status:
    return Status(
        "interrupted",
        reason=N_("This run is damaged ({what}), so how it ended is unknown.", what=what),
    )


_MAX_BYTES = 2**20
_FORM = re.compile(r"[,<>]?\d{0,2}(\.\d)?[a-z%]?")  # of a number in words; a wide one fills memory


def _reason(values: dict[str, Any]) -> str | None:
    """Return the reason with its template and values, where they are there and make it."""
    reason: str | None = values.get("reason")
    parts = values.get("reason_parts")
    if reason is None or not parts:
        return reason
    try:
        if not all(
            name is None or (name.isidentifier() and _FORM.fullmatch(form or ""))
            for _words, name, form, _conversion in Formatter().parse(parts["template"])
        ):
            return reason
        again = Sentence(parts["template"], parts["values"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        return reason  # the English sentence is the truth
    return again if again == reason else reason


def _parse(values: dict[str, Any]) -> Status:
    """Return the status. Raises Unreadable where a value is not what it must be."""
    try:
        status = _STORED.read(values)
    except WrongValue as error:
        if error.name == "state":
            raise Unreadable("status.json contains no state") from None
        raise
    return dataclasses.replace(status, reason=_reason(values))


_STORED = Stored(Status, "status.json")
_STATUSES = CachedReader(lambda path: _parse(object_of(path, most=_MAX_BYTES)))
