"""Local workers: processes of this machine, some of which wait warm. What a server has by itself.

In the order of the queue's table: the worker, which the server has begun already, is given the
claim; the status says "starting"; the worker is told, and the ticket goes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tfm_core.runs import claim, requests, tickets
from tfm_core.runs.atomic import read_json
from tfm_core.runs.backends import gpus
from tfm_core.runs.backends.backend import waits
from tfm_core.runs.limits import Limits
from tfm_core.runs.pool import WarmPool, WorkerProcess, default_size
from tfm_core.runs.run import Run
from tfm_core.runs.settings import BackendName
from tfm_core.runs.status import ALIVE, write_status
from tfm_core.sentences import N_
from tfm_core.training.devices import usable_cores

REFILL_SECONDS = 3.0
"""How long a new run is left alone before the next warm worker imports torch beside it."""


class LocalWorkers:
    """Trains each run in a process of its own; the process needs its server no more then."""

    name: BackendName = "local"

    def __init__(
        self, root: Path, limits: Limits, *, warm: int | None, wake: Callable[[], None]
    ) -> None:
        """Prepare. warm: workers that wait, else TFM_WARM_WORKERS. wake: a place is free."""
        self.places = max(1, usable_cores() - 1)
        self.pool = WarmPool(default_size() if warm is None else warm)
        self._root, self._limits, self._wake = root, limits, wake
        self._refill_at = 0.0

    def start(self, run: Run) -> bool:
        """Give a waiting run to a worker. Raises Unavailable, OSError and RunHeld."""
        if claim.is_held(run.folder):
            raise _held()
        device = gpus.device_for(run, self._root)
        worker = self.pool.take()
        try:
            is_ours = claim.take(run.folder, worker.mark)
        except OSError:
            self.pool.put_back(worker)
            raise
        if not is_ours:
            self.pool.put_back(worker)
            raise _held()
        try:
            is_told = self._tell(run, worker, device)
        except OSError:
            worker.end()  # and its claim with it
            raise
        self._refill_at = time.monotonic() + REFILL_SECONDS
        tickets.remove(self._root, run.id)
        if is_told:
            worker.wait_then(lambda: self._reap(run, worker))
        return is_told

    def has(self, run: Run) -> bool:
        """Say no: a run that was given to a worker is starting."""
        return False

    def look_after(self, runs: Callable[[], Iterable[Run]]) -> None:
        """Leave it to the thread that waits for each worker."""

    def get_ready(self) -> None:
        """Let the next workers get ready. Raises OSError."""
        if time.monotonic() >= self._refill_at:
            self.pool.fill()

    def n_warm(self) -> int:
        """Return how many workers wait for a run."""
        return sum(worker.is_alive for worker in self.pool.waiting())

    def close(self) -> None:
        """End the workers that wait."""
        self.pool.close()

    def _tell(self, run: Run, worker: WorkerProcess, device: str) -> bool:
        """Give a worker the run that is claimed for it; say whether it has it. Raises OSError.

        False: another server was quicker, and the run doesn't wait any more.
        """
        if not waits(run):
            claim.release(run.folder, worker.mark)
            self.pool.put_back(worker)
            return False
        requests.take(run.folder)  # what an earlier worker did not live to answer
        run.move_to(device)
        starting = dataclasses.replace(
            run.status.held_by(worker.mark),
            state="starting",
            device=device,
            heartbeat=time.time(),
            uptime=time.monotonic(),
        )
        write_status(run.folder, starting)
        worker.send(
            run.folder, max_seconds=self._limits.max_seconds, max_pause=self._limits.max_pause
        )
        return True

    def _reap(self, run: Run, worker: WorkerProcess) -> None:
        """Look how a worker ended; one that broke down leaves a run that failed, with the reason.

        A worker that was killed leaves its run interrupted.
        """
        code = worker.process.returncode
        values = read_json(run.folder / "status.json") or {}
        if code > 0 and values.get("state") in ALIVE and values.get("pid") == worker.mark.pid:
            last = (run.log_tail(1) or worker.said()[-1:] or ["it said nothing"])[-1]
            reason = N_("The worker broke down: {last}", last=last)
            with contextlib.suppress(OSError, claim.RunHeld), claim.moment(run.folder):
                write_status(
                    run.folder, dataclasses.replace(run.status, state="failed", reason=reason)
                )
        worker.close()
        self._wake()


def _held() -> claim.RunHeld:
    return claim.RunHeld("Another process still holds it; it begins once that one has let go.")
