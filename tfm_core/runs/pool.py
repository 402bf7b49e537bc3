"""Worker processes: some wait warm, with torch imported, so that a run starts within a moment."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import tfm_core
from tfm_core import machine
from tfm_core.runs import settings
from tfm_core.runs.process import ProcessMark, mark_of

ENOUGH_MEMORY = 4 * 2**30
"""Bytes of memory below which no worker waits warm; one takes about 300 MB."""


# On Windows: a worker does not go with the console of its server, nor hears its Ctrl-C.
_APART = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
    subprocess, "CREATE_NEW_PROCESS_GROUP", 0
)


class WorkerProcess:
    """One worker: getting ready, or waiting, until ``send`` gives it its run."""

    def __init__(self) -> None:
        """Start the process; it outlives this one once it has a run. Raises OSError."""
        root = str(Path(tfm_core.__file__).resolve().parent.parent)
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._log = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tfm_core.runs.worker", "--warm"],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "OMP_NUM_THREADS": "1",
                "OMP_WAIT_POLICY": "PASSIVE",
            },
            start_new_session=True,
            creationflags=_APART,
        )
        self.mark: ProcessMark = mark_of(self.process.pid)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def said(self) -> list[str]:
        """Return the lines that it wrote before it got a run."""
        try:
            self._log.seek(0)
            text = self._log.read()
        except (OSError, ValueError):
            return []
        return [line for line in text.decode(errors="replace").splitlines() if line.strip()]

    def send(
        self, folder: Path, *, max_seconds: float | None = None, max_pause: float | None = None
    ) -> None:
        """Assign a run, to be started once the worker is ready. Raises OSError where it is gone.

        The limits are those of ``Control``.
        """
        assert self.process.stdin is not None
        order = {"folder": str(folder), "max_seconds": max_seconds, "max_pause": max_pause}
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
        finally:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def wait_then(self, call: Callable[[], None]) -> None:
        """Call from a thread as soon as the process has ended."""

        def watch() -> None:
            self.process.wait()
            call()

        threading.Thread(target=watch, name="reaper", daemon=True).start()

    def end(self) -> None:
        """End a process that has no run yet."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.terminate()
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Forget its output."""
        self._log.close()


class WarmPool:
    """A few workers that wait; ``take`` hands out the one that has waited longest."""

    def __init__(self, size: int) -> None:
        """Keep ``size`` workers waiting once ``fill`` was called."""
        self.size = size
        self._waiting: deque[WorkerProcess] = deque()

    def fill(self) -> None:
        """Start what is missing; replace what died. Raises OSError."""
        for worker in [worker for worker in self._waiting if not worker.is_alive]:
            self._waiting.remove(worker)
            worker.end()
        while len(self._waiting) < self.size:
            self._waiting.append(WorkerProcess())

    def take(self) -> WorkerProcess:
        """Return a worker: a waiting one, else a new one. Raises OSError."""
        while self._waiting:
            worker = self._waiting.popleft()
            if worker.is_alive:
                return worker
            worker.end()
        return WorkerProcess()

    def put_back(self, worker: WorkerProcess) -> None:
        """Let a worker that was taken wait again."""
        self._waiting.appendleft(worker)

    def waiting(self) -> list[WorkerProcess]:
        """Return the workers that wait."""
        return list(self._waiting)

    def close(self) -> None:
        """End the workers that wait."""
        while self._waiting:
            self._waiting.popleft().end()


def default_size() -> int:
    """Return how many workers wait: TFM_WARM_WORKERS, else one, and none where memory is short."""
    chosen = settings.read().warm_workers
    if chosen is not None:
        return chosen
    return 0 if machine.memory() < ENOUGH_MEMORY else 1
