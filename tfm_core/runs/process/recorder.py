"""Write a run's events as they happen, and a status that shows that the worker lives."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tfm_core.disk import BINARY
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.status import State, Status, write_status

FIRST_STEPS = 100
"""The first steps are all written down: there the curve is steep."""

LINES = 600
"""About so many of the later steps are written down."""

STATUS_SECONDS = 0.25
HEARTBEAT_SECONDS = 1.0


def keeps(step: int, total_steps: int) -> bool:
    """Return whether a step is written down; a resumed run keeps the same ones."""
    return step <= FIRST_STEPS or step % max(1, total_steps // LINES) == 0 or step == total_steps


class Recorder:
    """Appends events, and updates the status from a thread, also during long steps.

    Use as a context; raises OSError where an event or a change of state cannot be written, and
    RunLocked where another process took the run over while this one was suspended.
    """

    def __init__(self, run_lock: RunLock, status: Status, *, every: float = STATUS_SECONDS) -> None:
        """Take the run that this process holds, and the status to continue from.

        every: seconds from one look at what changed to the next.
        """
        self._every = every
        self.folder, self.status = run_lock.folder, status
        self.clock = AwakeClock()
        self._run_lock, self._slept = run_lock, 0.0
        self._events = os.open(
            run_lock.folder / "events.jsonl", os.O_CREAT | os.O_APPEND | os.O_RDWR | BINARY, 0o644
        )
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._written: tuple[Status, float] | None = None
        self._thread = threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True)

    def __enter__(self) -> Recorder:
        """Start the heartbeat."""
        if self.has_events:
            os.lseek(self._events, -1, os.SEEK_END)
            if os.read(self._events, 1) != b"\n":
                self._append(b"\n")  # ends the line that a killed worker left torn
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the heartbeat; the status stays as it is."""
        self.stop_heartbeat()
        os.close(self._events)

    @property
    def has_events(self) -> bool:
        """Whether an earlier worker wrote events."""
        return os.fstat(self._events).st_size > 0

    def record(self, record: Mapping[str, Any]) -> None:
        """Append one record, as one line of strict JSON, in one write. Raises OSError."""
        self._append(json.dumps(record, allow_nan=False).encode() + b"\n")

    def progress(
        self, *, step: int, epoch: float, seconds: float, total_steps: int | None = None
    ) -> None:
        """Note how far the training is; the heartbeat writes it. total_steps: if it changed."""
        total = self.status.total_steps if total_steps is None else total_steps
        self.status = dataclasses.replace(
            self.status, step=step, epoch=epoch, seconds=seconds, total_steps=total
        )

    def change(self, state: State, reason: str | None = None, **facts: Any) -> None:
        """Write another state at once, and for after a power cut. Raises OSError."""
        self.status = dataclasses.replace(self.status, state=state, reason=reason, **facts)
        self._write(lasting=True)

    def sync(self) -> None:
        """Wait until all events are on the disk. Raises OSError."""
        os.fsync(self._events)

    def stop_heartbeat(self) -> None:
        """Stop the heartbeat: from now on the status is written only by ``change``."""
        self._closed.set()
        self._thread.join()

    def note(self, reason: str | None) -> None:
        """Note in words what is going on; the heartbeat writes it."""
        self.status = dataclasses.replace(self.status, reason=reason)

    def _append(self, line: bytes) -> None:
        self._check()
        while line:  # a nearly full disk takes a part and refuses the rest
            line = line[os.write(self._events, line) :]

    def _check(self) -> None:
        """Raise RunLocked where another process has the run by now: one that slept looks first."""
        self.clock.look()
        if self.clock.asleep != self._slept and not self._closed.is_set():
            if not self._run_lock.is_mine:
                raise RunLocked(
                    "Another worker took over this run while this worker was suspended."
                )
            self._slept = self.clock.asleep

    def _write(self, *, lasting: bool) -> None:
        with self._lock:
            self._check()
            status, now = self.status, time.monotonic()
            beating = dataclasses.replace(status, heartbeat=time.time(), uptime=now)
            write_status(self.folder, beating, lasting=lasting)
            self._written = (status, now)

    def _heartbeat(self) -> None:
        while not self._closed.wait(self._every):
            self.clock.look()
            if self._written is None:
                continue
            status, when = self._written
            if self.status != status or time.monotonic() - when >= HEARTBEAT_SECONDS:
                try:
                    self._write(lasting=False)
                except OSError:  # a full disk: the training itself will notice and say so
                    continue
                except RunLocked:  # the training will notice, too
                    return


LONGEST_BEAT = 2.0
"""A process that looks at the clock several times a second and didn't for so long was asleep."""


class AwakeClock:
    """Seconds that the process was awake. A thread has to ``look`` a few times a second."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Begin now. clock: seconds that never go back."""
        self._clock, self._lock = clock, threading.Lock()
        self._looked = clock()
        self._asleep = 0.0

    def __call__(self) -> float:
        """Return the seconds awake; only differences mean anything."""
        return self.look() - self._asleep

    @property
    def asleep(self) -> float:
        """Seconds that were slept through so far."""
        return self._asleep

    def look(self) -> float:
        """Note that the process is awake now; return the underlying clock."""
        with self._lock:
            now = self._clock()
            if now - self._looked > LONGEST_BEAT:
                self._asleep += now - self._looked
            self._looked = now
            return now
