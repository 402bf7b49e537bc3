"""The queue: starts waiting runs in worker processes, a few at once.

All state is on the disk, so a server can end and restart, while runs train on:

    .queue/line.sqlite  which runs wait, in which order (``waiting_line``). It grants nothing.
    <id>/claims/lock    locked by the process that works on the run (``locks.RunLock``).
    <id>/status.json    the run's state, and its process. Only who holds the run writes it.

A run starts in this order; a kill or a full disk between two steps leaves it so:

    1. status "queued"        not in the line: ``start`` puts it there
    2. it is in the line      it waits
    3. status "starting"      the worker ends with its server; the line says that the run waits
    4. the worker's order     it trains; the worker takes it out of the line
    5. it has left the line   it trains; a kill of the worker leaves it interrupted, to be resumed

Steps 3 to 5 belong to the back end; these are those of ``local_workers``. A job of ``ray_jobs``
takes the run itself if it still waits. A run that was submitted to Ray stays in the line and
counts as running until it starts.

A worker ends a run with its last checkpoint, then lets go of it, then writes the status "finished"
or "stopped". Resume, and Stop of a waiting run, hold the run while they write the status; it joins
the line after the status "queued" and leaves it after the status "stopped". Servers of one folder
start no more runs together than each may; the command line trains its own in its own process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import tempfile
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tfm_core import settings
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import SetDamaged, SetMissing
from tfm_core.runs.disk import quota, trash
from tfm_core.runs.disk.failures import os_errors_as_sentences, refusal
from tfm_core.runs.disk.locks import RunLock, RunLocked, limit_lock
from tfm_core.runs.disk.quota import Bounds
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import LimitReached, Limits, TooLarge, check_disk, check_memory
from tfm_core.runs.queue.local_workers import LocalWorkers
from tfm_core.runs.queue.ray_jobs import RayJobs
from tfm_core.runs.queue.waiting_line import Unavailable
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunNotFound, RunStore
from tfm_core.sentences import N_, Paragraph, StudentError, joined

LOOK_SECONDS = 0.5
"""How often to look for changes by other processes; this one's wake the queue."""

RETRY_SECONDS = 3.0
"""How long to wait before retrying a run that could not start, such as on a full disk."""

LATELY_SECONDS = 900.0
"""How long a turn counts after its run ended: newcomers overtake a waiting run no longer."""

logger = logging.getLogger(__name__)


class RunQueue:
    """Starts the waiting runs of a store, their owners in turn, from its own thread."""

    def __init__(
        self,
        store: RunStore,
        *,
        max_running: int | None = None,
        warm: int | None = None,
        limits: Limits | None = None,
        startup_delay: float = 0.0,
    ) -> None:
        """Prepare; ``start`` begins. max_running: TFM_MAX_RUNNING, else as the back end says.

        startup_delay: seconds until the first worker gets ready.
        """
        self.store = store
        host = settings.read()
        self.limits = limits or Limits.of(host)
        self.bounds = Bounds.of(host)
        self._wake, self._closed = threading.Event(), threading.Event()
        self.backend: LocalWorkers | RayJobs = (
            LocalWorkers(store.root, self.limits, warm=warm, wake=self._wake.set)
            if host.ray_address is None
            else RayJobs(store.root, self.limits, host.ray_address)
        )
        if max_running is None:
            max_running = host.max_running
        self.max_running = self.backend.places if max_running is None else max_running
        self._ready_at = time.monotonic() + startup_delay
        self._sweep_at = 0.0
        self._retry_at: dict[str, float] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, with the runs that an earlier server left waiting. Call it once."""
        try:
            queued = [run for run in self.store.kept() if run.status.state == "queued"]
            queued.sort(key=lambda run: run.meta.created)
            # a server may have been killed before it put them into the line
            waiting_line.restore(self.store.root, {run.id: run.meta.owner for run in queued})
        except OSError:  # a disk that is full now: see _work
            logger.exception("The waiting line could not be mended.")
        self._thread = threading.Thread(target=self._work, name="queue", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the queue and its idle workers; training runs continue."""
        self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.backend.close()

    @os_errors_as_sentences()
    def submit(self, run: Run) -> int:
        """Queue a new run; return how many runs were deleted for it.

        Raises LimitReached or ValueError, in a sentence. A refused run is stopped, with the reason.
        """
        status = run.status
        if status.state != "queued":
            raise StudentError("This run has already started.")
        try:
            self.limits.check(run.experiment, n_queued=0)
            self._check_data(run)
            check_memory(run.experiment, run.meta.device)
            with self.one_at_a_time():
                self.limits.check_line(len(set(waiting_line.ids(self.store.root)) - {run.id}))
                there = quota.disk_use(self.store.root, ())
                check_disk(run.experiment, there.free + there.deleted)
                gone = self._make_way(run)
                self._line_up(run)
        except (LimitReached, TooLarge, SetMissing, SetDamaged) as error:
            stopped = dataclasses.replace(status, state="stopped", reason=error.sentence)
            with contextlib.suppress(OSError):  # a full disk is not what it is refused for
                write_status(run.folder, stopped)
            raise
        self._wake.set()
        return gone

    def one_at_a_time(self) -> contextlib.AbstractContextManager[None]:
        """Lock the counting and starting of runs against other threads and the command line.

        Raises StudentError, in a sentence, if others hold the lock for too long.
        """
        return limit_lock(self.store.root, "runs")

    @os_errors_as_sentences()
    def resume(self, run: Run, device: str | None = None) -> int:
        """Resume a run that ended early from its last checkpoint, or else from the beginning.

        On its own device unless told otherwise. Returns how many runs were deleted for it.

        Raises LimitReached or ValueError, in a sentence.
        """
        status = run.status
        if run.meta.recorded:
            raise StudentError("This run comes with the app. Train a copy further.")
        if status.state == "finished":
            raise StudentError("This run is finished. Train a copy further.")
        is_ours = run.problem is not None or run.experiment.training is not None
        if not is_ours and status.state != "opened":
            raise StudentError(Paragraph("pretrained/foreign-steering"))
        if not status.can_resume:
            raise StudentError("This run is already training or waiting.")
        self.limits.check(run.experiment, n_queued=0)
        self.limits.check_trained(status.seconds - status.parent_seconds)
        self._check_data(run)
        device = device or run.meta.device
        check_memory(run.experiment, device)
        reason = None if run.has_checkpoint else N_("Starts again from the beginning.")
        with self.one_at_a_time():
            self.limits.check_line(len(waiting_line.ids(self.store.root)))
            gone = self._make_way(run)
            with RunLock(run.folder):
                if run.status.can_resume:  # no other process was quicker
                    run.move_to(device)
                    queued = dataclasses.replace(
                        run.status, state="queued", device=device, reason=reason
                    )
                    write_status(run.folder, queued)
            self._line_up(run)
        self._wake.set()
        return gone

    @os_errors_as_sentences()
    def admit(self, run: Run) -> int:
        """Admit an imported run; return how many runs were deleted for it.

        Raises LimitReached, in a sentence, if it exceeds the limits of this server.
        """
        self.limits.check(run.experiment, n_queued=0)
        with self.one_at_a_time():
            return self._make_way(run)

    def _check_data(self, run: Run) -> None:
        """Raise ValueError, in a sentence, if a run's data set is missing."""
        with sets.below(self.store.root):
            sets.check(run.experiment.task)

    @property
    def is_working(self) -> bool:
        """Whether the thread that starts waiting runs is alive."""
        return self._thread is not None and self._thread.is_alive()

    def n_running(self) -> int:
        """Return how many runs of this folder have a worker, also one of an earlier server."""
        return sum(run.status.is_alive for run in self.store.kept())

    def _make_way(self, run: Run) -> int:
        return quota.evict(self.store.root, self.store.kept(), self.bounds, keeps=run.id)

    def _line_up(self, run: Run) -> None:
        """Put a run into the line, where its owner's turn is; a run that trained was a turn."""
        now = time.time()
        served: list[str | None] = []
        for other in self.store.kept():
            status = other.status
            # a heartbeat in the far future is of a clock that was set back
            if status.is_alive or abs(now - (status.heartbeat or 0.0)) < LATELY_SECONDS:
                served.append(other.meta.owner)
        waiting_line.join(self.store.root, run.id, run.meta.owner, served)

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            try:
                self.step()
            except Exception:  # the next turn may succeed: a full disk, a lost network folder
                logger.exception("The queue could not start a run.")
            self._wake.wait(LOOK_SECONDS)

    def step(self) -> None:
        """Do what is due: clean up, start waiting runs. Its thread calls it repeatedly."""
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + trash.CLEAN_UP_SECONDS
            trash.clean_up(self.store.root)
        waiting = waiting_line.ids(self.store.root)
        for folder in list(waiting_line.start_errors):
            if folder.parent == self.store.root and folder.name not in waiting:
                waiting_line.start_errors.pop(folder, None)
        handed_over = self.backend.handed_over(waiting)
        if waiting:
            self._start_next(waiting, handed_over)
        if not self._closed.is_set() and time.monotonic() >= self._ready_at:
            self.backend.get_ready()

    def _start_next(self, waiting: list[str], handed_over: Collection[str]) -> None:
        """Start as many of the waiting runs as there are places, in their order."""
        for run_id in waiting:
            if run_id in handed_over or time.monotonic() < self._retry_at.get(run_id, 0.0):
                continue
            with self.one_at_a_time():  # another server may start runs of this folder, too
                if self.n_running() + len(handed_over) >= self.max_running:
                    return
                self._try_to_start(run_id)

    def _try_to_start(self, run_id: str) -> None:
        """Start a waiting run. Errors are noted, and it is retried."""
        folder, errors = self.store.root / run_id, waiting_line.start_errors
        self._retry_at.pop(run_id, None)
        try:
            run = self.store.get(run_id)
        except RunNotFound:
            run = None
        if run is None or not waiting_line.waits(folder):
            waiting_line.leave(self.store.root, run_id)
            return
        try:
            self.backend.start(run)
        except RunLocked:
            errors[folder] = N_("Another process still uses this run.")
        except Unavailable as error:
            self._retry_at[run_id] = time.monotonic() + self.backend.retry_seconds
            errors[folder] = error.sentence
        except OSError as error:
            self._retry_at[run_id] = time.monotonic() + RETRY_SECONDS
            why = joined(refusal(error), N_("This run starts as soon as possible."))
            if errors.get(folder) != why:
                logger.warning("Run %s could not be started: %s", run_id, error)
            errors[folder] = why
        else:
            errors.pop(folder, None)


HEALTH_SECONDS = 1.0
PATIENCE_SECONDS = 2.0
"""After this time a network folder counts as not responding."""

_SHARE = 0.05  # of one core, for looking
_TRIED = b"\0" * 4096  # most disks allocate such blocks


@dataclass(frozen=True, slots=True)
class Health:
    """One look at a server. reason: what keeps it from training, in a sentence, or None.

    running, waiting: runs; max_running, max_waiting: how many may.
    """

    reason: str | None
    running: int = 0
    max_running: int = 0
    waiting: int = 0
    max_waiting: int = 0


class Checkup:
    """Looks at a queue and its folder; safe to ask from many threads."""

    def __init__(self, queue: RunQueue) -> None:
        """Look at a queue; nothing is looked at yet."""
        self._queue = queue
        self._lock = threading.Lock()
        self._known: Health | None = None
        self._until = 0.0

    def look(self) -> Health:
        """Return how the server does, at most a moment old. Never raises."""
        if not self._lock.acquire(timeout=PATIENCE_SECONDS):
            return Health("The folder of runs does not answer.")
        try:
            begin = time.monotonic()
            if self._known is None or begin >= self._until:
                self._known = _look(self._queue)
                end = time.monotonic()
                self._until = end + max(HEALTH_SECONDS, (end - begin) / _SHARE)
            return self._known
        finally:
            self._lock.release()


def _look(queue: RunQueue) -> Health:
    root, limits = queue.store.root, queue.limits
    runs = [run for run in queue.store.list() if not run.meta.recorded]
    # who only shows writes nothing, and its disk may be read-only
    reason = None if limits.only_shows else _reason_not_to_write(root)
    if not queue.is_working:
        reason = "The queue has ended, so that no run is started; the server's log says why."
    return Health(
        reason,
        running=sum(run.status.is_alive for run in runs),
        max_running=queue.max_running,
        waiting=len(waiting_line.ids(root)),
        max_waiting=limits.max_queued,
    )


def _reason_not_to_write(root: Path) -> str | None:
    """Write a temporary file into the folder, or where it will be made with the first run."""
    folder = next(place for place in (root, *root.parents) if os.path.lexists(place))
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(_TRIED)
    except OSError as error:
        return joined(N_("The runs folder can't be written."), refusal(error))
    return None
