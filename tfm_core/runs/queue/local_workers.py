"""Local workers: processes of this machine, some of which wait with torch imported.

Each run on a GPU gets its own GPU: two would share its memory and slow each other down.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path

import tfm_core
from tfm_core import machine
from tfm_core.runs.disk.atomic import read_json
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.process import requests
from tfm_core.runs.process.identity import ProcessId, process_id
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.waiting_line import Unavailable
from tfm_core.runs.run import Run
from tfm_core.runs.status import ALIVE, write_status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import N_
from tfm_core.training import gpu_helper
from tfm_core.training.devices import usable_cores

REFILL_SECONDS = 3.0
"""How long a new run is left alone before another warm worker imports torch beside it."""


class LocalWorkers:
    """Trains each run in its own process, which outlives the server.

    Only the queue's thread calls it.
    """

    retry_seconds = 0.0  # a GPU may be free at any moment

    def __init__(
        self, root: Path, limits: Limits, *, warm: int | None, wake: Callable[[], None]
    ) -> None:
        """Prepare. warm: workers that wait, else ``default_size``. wake: a place is free."""
        self.places = max(1, usable_cores() - 1)
        self.pool = WarmPool(default_size() if warm is None else warm)
        self._root, self._limits, self._wake = root, limits, wake
        self._refill_at = 0.0
        self._given: dict[WorkerProcess, Run] = {}

    def start(self, run: Run) -> None:
        """Give a waiting run to a worker.

        Raises Unavailable, OSError and RunLocked; then the run still waits.
        """
        device = device_for(run, self._root)
        given = list(self._given.values())
        if not self.pool.n_ready() and not all(other.status.is_alive for other in given):
            return  # a worker whose run is over is about to be free
        with RunLock(run.folder, patience=0.0):
            if not waiting_line.waits(run.folder):  # it was just stopped
                waiting_line.leave(self._root, run.id)
                return
            worker = self.pool.take()
            try:
                self._prepare(run, worker, device)
            except OSError:
                self.pool.put_back(worker)
                raise
        worker.watch(freed=lambda: self._free(worker), ended=lambda: self._reap(run, worker))
        limits = self._limits
        try:
            worker.send(run.folder, max_seconds=limits.max_seconds, max_pause=limits.max_pause)
        except OSError:  # it has just ended, and the run still waits
            worker.end()
            raise
        self._given[worker] = run
        self._refill_at = time.monotonic() + REFILL_SECONDS
        waiting_line.leave(self._root, run.id)

    def handed_over(self, _waiting: Sequence[str]) -> Collection[str]:
        """Return none: a run that was given to a worker waits no more."""
        return ()

    def get_ready(self) -> None:
        """Let the next workers get ready. Raises OSError."""
        if time.monotonic() >= self._refill_at:
            self.pool.fill()

    def close(self) -> None:
        """End the workers that wait."""
        self.pool.close()

    def _prepare(self, run: Run, worker: WorkerProcess, device: str) -> None:
        """Let the status of a run name its worker. Raises OSError."""
        requests.take(run.folder)  # what an earlier worker did not live to answer
        run.move_to(device)
        starting = dataclasses.replace(
            run.status.with_process(worker.mark),
            state="starting",
            device=device,
            heartbeat=time.time(),
            uptime=time.monotonic(),
        )
        write_status(run.folder, starting)

    def _free(self, worker: WorkerProcess) -> None:
        """Let a worker whose run is over wait for the next, if there is room."""
        self._given.pop(worker, None)
        self.pool.put_back(worker)
        self.pool.trim()
        self._wake()

    def _reap(self, run: Run, worker: WorkerProcess) -> None:
        """Look how a worker ended; one that broke down leaves a run that failed, with the reason.

        A worker that was killed leaves its run interrupted.
        """
        self._given.pop(worker, None)
        code = worker.process.returncode
        values = read_json(run.folder / "status.json") or {}
        if code > 0 and values.get("state") in ALIVE and values.get("pid") == worker.mark.pid:
            last = (run.log_tail(1) or worker.output()[-1:] or ["no output"])[-1]
            reason = N_("The worker crashed: {last}", last=last)
            with contextlib.suppress(OSError, RunLocked), RunLock(run.folder):
                write_status(
                    run.folder, dataclasses.replace(run.status, state="failed", reason=reason)
                )
        worker.close()
        self._wake()


ENOUGH_MEMORY = 4 * 2**30
"""Bytes of memory below which no worker waits warm; one takes about 300 MB."""


# On Windows: a worker does not end with the console of its server, nor hear its Ctrl-C.
_DETACHED = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
    subprocess, "CREATE_NEW_PROCESS_GROUP", 0
)


class WorkerProcess:
    """One worker: getting ready, waiting for a run, or training the one that ``send`` gave it."""

    def __init__(self) -> None:
        """Start the process; it outlives this one once it has a run. Raises OSError."""
        root = str(Path(tfm_core.__file__).resolve().parent.parent)
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._log = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tfm_core.runs.process.worker", "--warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "OMP_NUM_THREADS": "1",
                "OMP_WAIT_POLICY": "PASSIVE",
            },
            start_new_session=True,
            creationflags=_DETACHED,
        )
        self.mark: ProcessId = process_id(self.process.pid)
        self.is_ready = False
        self._freed: Callable[[], None] | None = None
        self._ended: Callable[[], None] | None = None
        threading.Thread(target=self._listen, name="worker", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def watch(self, *, freed: Callable[[], None], ended: Callable[[], None]) -> None:
        """Call, from a thread, when the run that it gets next is over, or when the process ends."""
        self._freed, self._ended = freed, ended

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as answers:
            ready = (line for line in answers if line.strip() == b"ready")
            for n, _line in enumerate(ready):
                self.is_ready = True
                if n and self._freed is not None:  # the first one is before any run
                    self._freed()
        self.process.wait()
        self._close_input()
        if self._ended is not None:
            self._ended()

    def output(self) -> list[str]:
        """Return the errors that it wrote before it got a run."""
        try:
            self._log.seek(0)
            text = self._log.read()
        except (OSError, ValueError):
            return []
        return [line for line in text.decode(errors="replace").splitlines() if line.strip()]

    def send(
        self, folder: Path, *, max_seconds: float | None = None, max_pause: float | None = None
    ) -> None:
        """Assign a run, to be started once the worker is ready. Raises OSError if it has ended.

        The limits are those of ``Control``.
        """
        assert self.process.stdin is not None
        self.is_ready = False
        order = {"folder": str(folder), "max_seconds": max_seconds, "max_pause": max_pause}
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """End a process that has no run."""
        self._freed = self._ended = None
        self._close_input()
        self.process.terminate()
        self.process.wait()
        self.close()

    def _close_input(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def close(self) -> None:
        """Forget its output."""
        self._log.close()


class WarmPool:
    """A few workers that wait; ``take`` hands out one that is ready, if there is one."""

    def __init__(self, size: int) -> None:
        """Keep ``size`` workers waiting once ``fill`` was called."""
        self.size = size
        self.waiting: list[WorkerProcess] = []

    def fill(self) -> None:
        """Start what is missing; replace what died. Raises OSError."""
        for worker in [worker for worker in self.waiting if not worker.is_alive]:
            self.waiting.remove(worker)
            worker.end()
        while len(self.waiting) < self.size:
            self.waiting.append(WorkerProcess())

    def take(self) -> WorkerProcess:
        """Return a worker: a waiting one, else a new one. Raises OSError."""
        while self.waiting:
            worker = max(self.waiting, key=lambda worker: worker.is_ready)
            self.waiting.remove(worker)
            if worker.is_alive:
                return worker
            worker.end()
        return WorkerProcess()

    def n_ready(self) -> int:
        """Return how many workers could begin at once."""
        return sum(worker.is_ready for worker in self.waiting)

    def trim(self) -> None:
        """End workers beyond the size, first those that are not ready."""
        while len(self.waiting) > self.size:
            worker = min(self.waiting, key=lambda worker: worker.is_ready)
            self.waiting.remove(worker)
            worker.end()

    def put_back(self, worker: WorkerProcess) -> None:
        """Let a worker that was taken wait again."""
        self.waiting.insert(0, worker)

    def close(self) -> None:
        """End the workers that wait, and keep none waiting."""
        self.size = 0
        while self.waiting:
            self.waiting.pop().end()


def default_size() -> int:
    """Return how many workers wait: one, and none where memory is short."""
    return 0 if machine.memory() < ENOUGH_MEMORY else 1


logger = logging.getLogger(__name__)


@cache
def gpu_names() -> tuple[str, ...]:
    """Return the names of the NVIDIA GPUs of this machine; looked for once, which takes seconds."""
    try:
        found = gpu_helper.devices()
    except RuntimeError:  # the worker reports what is wrong with them
        logger.exception("The GPUs of this machine could not be counted.")
        return ()
    return tuple(
        device.name for device in found if device.available and device.name.startswith("cuda")
    )


def device_for(run: Run, root: Path) -> str:
    """Return the device that a waiting run of a folder gets: its own, or another GPU that is free.

    Raises Unavailable where runs of this machine have all GPUs.
    """
    wanted = run.meta.device
    if not wanted.startswith("cuda") or run.damage is not None or wanted not in gpu_names():
        return wanted  # what is not there its worker refuses
    others = [other.status for other in RunStore(root).kept() if other.id != run.id]
    taken = {status.device for status in others if status.is_alive}
    free = [name for name in gpu_names() if name not in taken]
    if not free:
        raise Unavailable("Waiting for a GPU: all {n} are in use.", n=len(gpu_names()))
    return wanted if wanted in free else free[0]
