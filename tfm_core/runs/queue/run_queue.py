"""The queue: starts waiting runs in worker processes, a few at once.

All state is on the disk, so a server can end and restart, and several can share one folder. Three
kinds of files describe a run:

    .queue/<place>.<id>  a ticket: this run waits. It sets the order and grants nothing.
    <id>/claims/         which process works on the run. Only that process writes the status.
    <id>/status.json     the run's state, and the process that set it.

A run starts in this order; a kill or a full disk between two steps leaves it so:

    1. status "queued"      no ticket: ``_mend`` gives it one at its next look
    2. its ticket           it waits
    3. the worker's claim   worker and claim end with the server: it waits
    4. status "starting"    the same; its ticket distinguishes it from an interrupted run
    5. the worker's order   it trains; the ticket is removed later
    6. the ticket removed   it trains; a kill of the worker leaves it interrupted, to be resumed

Steps 3 to 6 belong to the back end (``backends``); these are those of local workers. A cluster's
jobs take the claim themselves if the run still waits for them (see ``hosting.clusters.jobs``). A
run that was submitted to a cluster keeps its ticket and counts as running until it starts.

A worker ends a run with its last checkpoint, then releases its claim, then writes the status
"finished" or "stopped": in between, the run counts as interrupted and resumes from its last step.
Resume, and Stop of a waiting run, hold the claim while they write the status; a ticket is added
after the status "queued" and removed after the status "stopped". All servers of a folder together
start at most ``max_running`` runs: each counts and starts with ``.queue/lock`` locked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Iterator

from tfm_core.data.own import place, sets
from tfm_core.data.own.sets import SetDamaged, SetMissing
from tfm_core.runs import settings, shared_store
from tfm_core.runs.backends import job
from tfm_core.runs.backends.backend import JobRefused, Unavailable, waits
from tfm_core.runs.backends.registry import chosen
from tfm_core.runs.disk import cleanup, locks, ownership, quota
from tfm_core.runs.disk.failures import os_errors_as_sentences, refusal
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.disk.quota import Bounds
from tfm_core.runs.queue import claim, resources, tickets, turns
from tfm_core.runs.queue.limits import LimitReached, Limits
from tfm_core.runs.queue.resources import TooLarge
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunNotFound, RunStore
from tfm_core.sentences import N_, Paragraph, StudentError, joined

LOOK_SECONDS = 0.5
"""How often to look for changes by other servers; this one's wake the queue."""

MEND_SECONDS = 30.0
"""How often to look for queued runs without a ticket."""

RETRY_SECONDS = 3.0
"""How long to wait before retrying a run that could not start, such as on a full disk."""

REFUSED_SECONDS = 30.0
"""How long to wait before retrying a run that its cluster refused: others get their turn."""

PATIENCE_SECONDS = 10.0
"""How long to leave starting to another server, which may be suspended."""

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
        calm: float = 0.0,
    ) -> None:
        """Prepare; ``start`` begins. max_running: TFM_MAX_RUNNING, else as the back end says.

        calm: seconds until the first worker gets ready.
        """
        self.store = store
        said = settings.read()
        self.limits = limits or Limits.of(said)
        self.bounds = Bounds.of(said)
        self._wake, self._closed = threading.Event(), threading.Event()
        self.backend = chosen(store.root, self.limits, warm=warm, wake=self._wake.set)
        if max_running is None:
            max_running = said.max_running
        self.max_running = self.backend.places if max_running is None else max_running
        self._ready_at = time.monotonic() + calm
        self._sweep_at = self._mend_at = self._refused_at = 0.0
        self._lost: set[str] = set()
        self._over: dict[str, tuple[int, int]] = {}  # the statuses of runs that do not wait
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, with the runs that an earlier server left waiting. Call it once."""
        try:
            self._mend(at_once=True)
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
            raise StudentError("Only a new run can be started.")
        try:
            self.limits.check(run.experiment, n_queued=0)
            self._check_data(run)
            resources.check(run.experiment, run.meta.device)
            with self.one_at_a_time():
                waiting = [name for name in tickets.waiting(self.store.root) if name != run.id]
                self.limits.check_line(len(waiting))
                there = quota.disk_use(self.store.root, ())
                resources.check_disk(run.experiment, there.free + there.deleted)
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
        """Lock the counting and starting of runs against other threads and servers.

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
        if run.problem is None and run.experiment.task.is_foreign:
            raise StudentError(Paragraph("pretrained/foreign-steering"))
        if not status.can_resume:
            raise StudentError("This run trains or waits. There is nothing to resume.")
        shared_store.take_over(run.folder)
        self.limits.check(run.experiment, n_queued=0)
        self.limits.check_trained(status.seconds - status.parent_seconds)
        self._check_data(run)
        device = device or run.meta.device
        resources.check(run.experiment, device)
        words = None if run.has_checkpoint else N_("It starts again from the beginning.")
        with self.one_at_a_time():
            self.limits.check_line(len(tickets.waiting(self.store.root)))
            gone = self._make_way(run)
            with claim.moment(run.folder):
                if run.status.can_resume:  # no other process was quicker
                    run.move_to(device)
                    job.renew(run.folder)
                    queued = dataclasses.replace(
                        run.status, state="queued", device=device, reason=words
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
        with place.below(self.store.root):
            sets.check(run.experiment.task)

    def position(self, run_id: str) -> int | None:
        """Return the position of a run in the queue, from 1, or None."""
        waiting = tickets.waiting(self.store.root)
        return waiting.index(run_id) + 1 if run_id in waiting else None

    @property
    def is_working(self) -> bool:
        """Whether the thread that starts waiting runs is alive."""
        return self._thread is not None and self._thread.is_alive()

    def n_running(self) -> int:
        """Return how many runs of this folder have a worker, of any server."""
        return sum(run.status.is_alive for run in self._mine())

    def _make_way(self, run: Run) -> int:
        return quota.evict(self.store.root, self._mine(), self.bounds, keeps=run.id)

    def _line_up(self, run: Run) -> None:
        """Give a run its ticket, where its owner's turn is."""
        runs = {one.id: one for one in self._mine()}
        waiting = [name for name in tickets.waiting(self.store.root) if name != run.id]
        owners = [runs[name].meta.owner if name in runs else None for name in waiting]
        now = time.time()
        served = [one.meta.owner for one in runs.values() if turns.was_served(one.status, now=now)]
        at = turns.place(owners, served, run.meta.owner)
        tickets.add(self.store.root, run.id, at=at)

    def _mine(self) -> list[Run]:
        """Return this server's runs, without those of other servers on the same store."""
        return [run for run in self.store.kept() if not ownership.is_theirs(run.folder)]

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            try:
                self.step()
            except Exception:  # the next turn may succeed: a full disk, a lost network folder
                logger.exception("The queue could not start a run.")
            self._wake.wait(LOOK_SECONDS)

    def step(self) -> None:
        """Do what is due: mend, clean up, start waiting runs. Its thread calls it repeatedly."""
        if time.monotonic() >= self._mend_at:
            self._mend(at_once=False)
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + cleanup.EVERY_SECONDS
            cleanup.clean_up(self.store.root)
        waiting = tickets.waiting(self.store.root)
        tickets.keep_start_errors(self.store.root, waiting)
        if waiting or self.backend.name != "local":
            with self._alone() as may_start:
                if may_start:
                    self.backend.look_after(self.store.kept)
                    self._start_next(waiting)
        if not self._closed.is_set() and time.monotonic() >= self._ready_at:
            self.backend.get_ready()

    def _start_next(self, waiting: list[str]) -> None:
        """Start as many of the waiting runs as there are places, in their order."""
        handed = {run_id for run_id in waiting if self.backend.has(Run(self.store.root / run_id))}
        places = self.max_running - self.n_running() - len(handed)
        for run_id in waiting:
            if places <= 0:
                break
            if run_id not in handed:
                places -= self._try_to_start(run_id)

    def _mend(self, *, at_once: bool) -> None:
        """Give a ticket to queued runs without one: a server was killed before it wrote it.

        Unless at_once, only to those that had none at the last look either: a new run is about to
        get its ticket.
        """
        self._mend_at = time.monotonic() + MEND_SECONDS
        waiting = tickets.waiting(self.store.root)
        lost = [run for run in self._queued() if run.id not in waiting]
        for run in sorted(lost, key=lambda run: run.meta.created):
            if at_once or run.id in self._lost:
                tickets.add(self.store.root, run.id)
        self._lost = {run.id for run in lost}

    def _queued(self) -> list[Run]:
        """Return the runs in the state "queued"; a status is read only if it changed."""
        waiting, over = list[Run](), dict[str, tuple[int, int]]()
        for run in self._mine():
            try:
                facts = (run.folder / "status.json").stat()
            except OSError:
                continue
            changed = (facts.st_mtime_ns, facts.st_ino)  # each status is a new file
            if self._over.get(run.id) != changed and run.status.state == "queued":
                waiting.append(run)
            else:
                over[run.id] = changed
        self._over = over
        return waiting

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Lock counting and starting against other servers; return whether to start any."""
        path = self.store.root / tickets.FOLDER / "lock"
        try:
            lock = locks.lock(path)
        except BlockingIOError:
            self._refused_at = self._refused_at or time.monotonic()
            yield time.monotonic() - self._refused_at > PATIENCE_SECONDS
            return
        except OSError:  # a full disk: the run that cannot start says so
            yield True
            return
        self._refused_at = 0.0
        try:
            yield True
        finally:
            locks.unlock(lock)

    def _try_to_start(self, run_id: str) -> bool:
        """Start a waiting run; return whether it started. Errors are noted, and it is retried."""
        folder = self.store.root / run_id
        if tickets.in_backoff(folder):
            return False
        run = self._waiting_run(run_id)
        if run is None:
            return False
        try:
            is_started = self.backend.start(run)
        except (claim.RunHeld, Unavailable) as error:
            seconds = REFUSED_SECONDS if isinstance(error, JobRefused) else 0
            tickets.note_start_error(folder, error.sentence, seconds=seconds)
            return False
        except OSError as error:
            if tickets.note_start_error(folder, _why_not(error), seconds=RETRY_SECONDS):
                logger.warning("Run %s could not be started: %s", run_id, error)
            return False
        tickets.forget_start_error(folder)
        return is_started

    def _waiting_run(self, run_id: str) -> Run | None:
        """Return the run of a ticket; remove the ticket if the run no longer waits."""
        try:
            run = self.store.get(run_id)
        except RunNotFound:
            run = None
        if run is None or not waits(run):
            tickets.remove(self.store.root, run_id)
            return None
        return run


def _why_not(error: OSError) -> str:
    return joined(refusal(error), N_("This run starts as soon as it can."))
