"""The queue: starts waiting runs in worker processes, a few at once.

It holds nothing that is not on the disk: the line is a folder of tickets, who runs is known by the
statuses. So a server can end and start again, and several can share one folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time

from tfm_core.runs import claim, requests, settings, tickets
from tfm_core.runs.atomic import read_json
from tfm_core.runs.limits import LimitReached, Limits
from tfm_core.runs.pool import WarmPool, WorkerProcess, default_size
from tfm_core.runs.process import ProcessMark
from tfm_core.runs.run import Run
from tfm_core.runs.status import ALIVE, write_status
from tfm_core.runs.store import RunNotFound, RunStore
from tfm_core.sentences import N_, StudentError
from tfm_core.training.devices import usable_cores

LOOK_SECONDS = 0.5
"""How often to look for what other servers and their workers did; one's own wake the queue."""

REFILL_SECONDS = 3.0
"""How long a new run is left alone before the next warm worker imports torch beside it."""

logger = logging.getLogger(__name__)


class RunQueue:
    """Starts the waiting runs of a store, first come first served, from a thread of its own."""

    def __init__(
        self,
        store: RunStore,
        *,
        max_running: int | None = None,
        warm: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Prepare; ``start`` begins. max_running: TFM_MAX_RUNNING, else all cores but one."""
        self.store = store
        said = settings.read()
        if max_running is None:
            max_running = said.max_running
        self.max_running = max(1, usable_cores() - 1) if max_running is None else max_running
        self.limits = limits or Limits.of(said)
        self.pool = WarmPool(default_size() if warm is None else warm)
        self._refill_at = 0.0
        self._wake, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, with the runs that an earlier server left waiting. Call it once."""
        for run in reversed(self.store.list()):
            if not run.meta.recorded and run.status.state == "queued":
                tickets.add(self.store.root, run.id)
        self._thread = threading.Thread(target=self._work, name="queue", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the queue and its waiting workers; running runs go on without it."""
        self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.pool.close()

    def submit(self, run: Run) -> None:
        """Let a new run wait for its turn. Raises LimitReached or ValueError, in a sentence.

        A run that is refused is stopped, with the reason.
        """
        status = run.status
        if status.state != "queued":
            raise StudentError(
                "This run is {state}; only a new run can be started.", state=status.state
            )
        waiting = [name for name in tickets.waiting(self.store.root) if name != run.id]
        try:
            self.limits.check(run.experiment, n_queued=len(waiting))
        except LimitReached as error:
            stopped = dataclasses.replace(status, state="stopped", reason=str(error))
            write_status(run.folder, stopped)
            raise
        tickets.add(self.store.root, run.id)
        self._wake.set()

    def resume(self, run: Run) -> None:
        """Let a run that ended early go on from its last checkpoint, or else from the beginning.

        Raises LimitReached or ValueError, in a sentence.
        """
        status = run.status
        if run.meta.recorded:
            raise StudentError("This run comes with the app; train a copy of it further instead.")
        if status.state == "finished":
            raise StudentError("This run is finished; it can be trained further as a new run.")
        if not status.can_resume:
            raise StudentError(
                "This run is {state}; there is nothing to resume.", state=status.state
            )
        self.limits.check(run.experiment, n_queued=len(tickets.waiting(self.store.root)))
        words = None if run.has_checkpoint else N_("It starts again from the beginning.")
        write_status(run.folder, dataclasses.replace(status, state="queued", reason=words))
        tickets.add(self.store.root, run.id)
        self._wake.set()

    def position(self, run_id: str) -> int | None:
        """Return the place of a run in the line, from 1, or None where it doesn't wait."""
        waiting = tickets.waiting(self.store.root)
        return waiting.index(run_id) + 1 if run_id in waiting else None

    @property
    def is_working(self) -> bool:
        """Whether the thread lives that starts the waiting runs."""
        return self._thread is not None and self._thread.is_alive()

    def n_running(self) -> int:
        """Return how many runs of the store have a worker, whoever started it."""
        return sum(run.status.is_alive for run in self.store.list() if not run.meta.recorded)

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            try:
                self._turn()
            except Exception:  # the next turn may succeed: a full disk, a lost network folder
                logger.exception("The queue could not start a run.")
            self._wake.wait(LOOK_SECONDS)

    def _turn(self) -> None:
        waiting = tickets.waiting(self.store.root)
        if waiting:
            slots = self.max_running - self.n_running()
            for run_id in waiting[: max(0, slots)]:
                self._start(run_id)
        if not self._closed.is_set() and time.monotonic() >= self._refill_at:
            self.pool.fill()

    def _start(self, run_id: str) -> None:
        """Give a run to a worker, if this call is the one that takes its ticket."""
        worker = self.pool.take()
        run = self._taken(run_id)
        if run is None or not claim.take(run.folder, worker.mark):
            self.pool.put_back(worker)
            return
        self._refill_at = time.monotonic() + REFILL_SECONDS
        try:
            self._mark_starting(run, worker.mark)
        except OSError:
            worker.end()
            tickets.add(self.store.root, run_id)
            raise
        with contextlib.suppress(OSError):  # it died a moment ago: seen when it is reaped
            worker.send(run.folder, self.limits.max_seconds)
        worker.wait_then(lambda: self._reap(run, worker))

    def _taken(self, run_id: str) -> Run | None:
        """Take the ticket of a run; return the run if it is there and waits."""
        if not tickets.remove(self.store.root, run_id):
            return None
        try:
            run = self.store.get(run_id)
        except RunNotFound:
            return None
        if run.status.state != "queued":
            return None
        requests.take(run.folder)  # what an earlier worker did not live to answer
        return run

    def _mark_starting(self, run: Run, mark: ProcessMark) -> None:
        starting = dataclasses.replace(
            run.status,
            state="starting",
            pid=mark.pid,
            host=mark.host,
            created=mark.created,
            heartbeat=time.time(),
            queue_position=None,
        )
        write_status(run.folder, starting)

    def _reap(self, run: Run, worker: WorkerProcess) -> None:
        """Look how a worker ended; one that broke down leaves a run that failed, with the reason.

        A worker that was killed leaves its run interrupted.
        """
        code = worker.process.returncode
        values = read_json(run.folder / "status.json") or {}
        if code > 0 and values.get("state") in ALIVE and values.get("pid") == worker.mark.pid:
            last = (run.log_tail(1) or worker.said()[-1:] or ["it said nothing"])[-1]
            failed = dataclasses.replace(
                run.status, state="failed", reason=N_("The worker broke down: {last}", last=last)
            )
            with contextlib.suppress(OSError):
                write_status(run.folder, failed)
        worker.close()
        self._wake.set()
