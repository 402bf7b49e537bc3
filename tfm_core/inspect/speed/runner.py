"""Runs the measurements of a server, one process at a time.

A process ends when it is done or stopped, at its time limit, and when nobody polls it any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import tfm_core
from tfm_core.choices.config import Experiment
from tfm_core.inspect.speed.measure import MEMORY_SHARE, clock_name
from tfm_core.inspect.speed.report import COMPARISONS, SpeedReport
from tfm_core.sentences import N_, StudentError

LIMIT = 90.0
"""Seconds after which a measurement is ended."""
PATIENCE = 15.0
"""Seconds without a poll after which a measurement is ended."""
_KILLED = getattr(signal, "SIGKILL", 9)  # Windows has no such signal
_POLL_SECONDS = 0.1  # seconds between two polls of a process


class Busy(StudentError):
    """Another measurement runs; two at once would disturb each other."""


class BenchmarkProcess:
    """One measuring process, and the report that its lines make."""

    def __init__(
        self,
        name: str,
        experiment: Experiment,
        device: str,
        *,
        limit: float = LIMIT,
        patience: float = PATIENCE,
        memory_share: float = MEMORY_SHARE,
    ) -> None:
        """Start the process. Raises OSError.

        limit, patience: seconds; memory_share: of the free memory that it may take.
        """
        self.name = name
        self.begun = time.monotonic()
        self._report = SpeedReport(name, device, clock_name(device))
        self._limit = limit
        self._patience, self._polled = patience, self.begun
        self._lock = threading.Lock()
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115  it lives as long as the process
        self._process = self._start()
        order = {
            "name": name,
            "experiment": experiment.model_dump(),
            "device": device,
            "memory_share": memory_share,
        }
        with contextlib.suppress(OSError):  # it died at once: the report will say so
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._guard, daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether more may come."""
        return self._reader.is_alive()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.begun

    def poll(self) -> SpeedReport:
        """Return what was measured until now; polling keeps the measurement alive."""
        self._polled = time.monotonic()
        with self._lock:
            return self._report

    def stop(self, sentence: str | None = None) -> None:
        """End the process and its children; the sentence is the reason."""
        with self._lock:
            if sentence is not None and self._report.problem is None and self.is_running:
                self._report.problem = sentence
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, _KILLED)
            else:
                self._process.kill()

    def wait(self, seconds: float) -> SpeedReport:
        """Return the report once the process has ended, or after so many seconds."""
        self._reader.join(seconds)
        return self.poll()

    def _start(self) -> subprocess.Popen[str]:
        root = str(Path(tfm_core.__file__).resolve().parent.parent)
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.Popen(
            [sys.executable, "-m", "tfm_core.inspect.speed.measure"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_WAIT_POLICY": "PASSIVE"},
            start_new_session=True,
        )

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._lock:
                self._report.take(line)
        self._process.wait()
        with self._lock:
            if not self._report.is_complete and self._report.problem is None:
                self._report.problem = self._why_it_ended()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()

    def _why_it_ended(self) -> str:
        if self._process.returncode == -_KILLED:
            return N_("The measurement was killed, perhaps for lack of memory.")
        self._log.seek(0)
        lines = [line for line in self._log.read().decode(errors="replace").splitlines() if line]
        last = lines[-1][:200] if lines else N_("no output")
        return N_("The measurement ended early ({error}). Try again.", error=last)

    def _guard(self) -> None:
        while self.is_running:
            now = time.monotonic()
            if now - self.begun > self._limit:
                self.stop(
                    N_(
                        "Stopped at the limit of {limit:.0f} seconds. Try a smaller model.",
                        limit=self._limit,
                    )
                )
            elif now - self._polled > self._patience:
                self.stop(N_("Stopped because nobody was watching."))
            time.sleep(_POLL_SECONDS)


_beginning = threading.Lock()
_current: list[BenchmarkProcess] = []
"""The measurement of this process that runs, or ran last."""


def begin(name: str, experiment: Experiment, device: str) -> BenchmarkProcess:
    """Start a measurement. Raises Busy, in a sentence, while another one runs; OSError."""
    with _beginning:
        for running in filter(lambda one: one.is_running, _current):
            raise Busy(
                "Another measurement (“{label}”) has run on this server for {seconds:.0f} s. "
                "Yours starts when it is done.",
                label=COMPARISONS[running.name].label,
                seconds=running.seconds,
            )
        _current[:] = [BenchmarkProcess(name, experiment, device)]
        return _current[0]
