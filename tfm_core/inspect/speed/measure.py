"""Timing, and the measuring process: ``python -m tfm_core.inspect.speed.measure``.

Every side runs in every round, there and back (A B B A): a machine that slows down slows all sides
of a round alike, so ratios within a round hold.

The process reads one line of JSON, ``{"name": ..., "experiment": {...}, "device": "cpu"}``, and
writes lines of JSON: ``progress``, ``case`` (checks and counts), ``round`` (seconds per call), then
``end`` or ``failed``. It exits when its input closes.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import psutil

import tfm_core
from tfm_core.choices.config import Experiment, ModelConfig
from tfm_core.inspect.speed.report import BATCH, COMPARISONS, BenchmarkCase, SpeedReport
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.inspect.speed.bench import Bench


ROUNDS = 9
MIN_ROUNDS = 3
LONG_ENOUGH = 4.0
"""Seconds after which a case gets no more rounds than MIN_ROUNDS."""
TURN = 0.02
"""Seconds that a side should take at a time, well above any clock's resolution."""
MAX_CALLS = 200
NICENESS = 5
MEMORY_SHARE = 0.6
"""The share of the free memory that a measurement may take."""

WORDS = 48
"""Words of each vocabulary of a timed training step, about those of the small tasks."""
MIN_SECONDS, REPEATS = 0.1, 3
"""A training step is timed for at least so long, and so often."""

Clock = Callable[[], float]
Emit = Callable[..., None]


def rounds(
    sides: Mapping[str, Callable[[], object]],
    calls: Mapping[str, int],
    *,
    count: int,
    clock: Clock = time.process_time,
) -> Iterator[dict[str, float]]:
    """Yield the seconds per call of every side, for each of ``count`` rounds.

    A round runs all sides in order and then in reverse, ``calls`` calls of each at a time.
    """
    for _ in range(count):
        gc.collect()
        sums = dict.fromkeys(sides, 0.0)
        for name in [*sides, *reversed(list(sides))]:
            sums[name] += seconds_of(sides[name], calls[name], clock)
        yield {name: seconds / (2 * calls[name]) for name, seconds in sums.items()}


def seconds_of(call: Callable[[], object], count: int, clock: Clock) -> float:
    """Return the seconds that ``count`` calls take together."""
    gc.disable()  # a collection would be charged to whoever happens to run
    try:
        begin = clock()
        for _ in range(count):
            call()
        return clock() - begin
    finally:
        gc.enable()


def step_time(config: ModelConfig, length: int, *, batch: int = BATCH) -> float:
    """Return the seconds of the fastest forward and backward pass of ``length`` tokens.

    A recurrent decoder makes n steps in sequence; a Transformer a few large products, with scores
    that grow quadratically (Vaswani et al. 2017, Table 1). One thread. Thread time, so that waiting
    does not count; the fastest, because the rest is disturbance.
    """
    import torch

    from tfm_core.models.build import TextShape, build_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_model(config, TextShape(WORDS, WORDS))
        src, tgt = (torch.randint(4, WORDS, (batch, length)) for _ in range(2))

    def call() -> None:
        loss = model(src, tgt).logsumexp(-1).mean()
        model.zero_grad()
        loss.backward()

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        call()  # the first one pays for what is new
        times: list[float] = []
        while len(times) < REPEATS or sum(times) < MIN_SECONDS:
            times.append(seconds_of(call, 1, time.thread_time))
    finally:
        torch.set_num_threads(threads)
    return min(times)


def main() -> int:
    """Run the measurement that stdin requests; return the exit code."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    output = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no line of ours
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_with, args=(sys.stdin,), daemon=True).start()

    def say(kind: str, **facts: object) -> None:
        print(json.dumps({"kind": kind, **facts}), file=output, flush=True)

    experiment, device = Experiment.parse(order["experiment"]), str(order["device"])
    limit_memory(order.get("memory_share", MEMORY_SHARE))
    try:
        measure(order["name"], experiment, device, say)
    except Exception as error:
        from tfm_core.runs.disk.failures import sentence

        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        say("failed", sentence=sentence(error, experiment, device).partition(" (more in ")[0])
        return 1
    return 0


def measure(
    name: str, experiment: Experiment, device: str, say: Emit, *, count: int = ROUNDS
) -> None:
    """Check and time a comparison of the registry; tell ``say`` everything."""
    say("progress", done=0, total=0, words=N_("Loading PyTorch"))
    import torch

    from tfm_core.inspect.speed.bench import Bench

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)

    comparison = COMPARISONS[name]
    say("progress", done=0, total=0, words=N_("Building the model and its data"))
    bench = Bench.of(experiment, device)
    clock = clock_of(device)
    say("progress", done=0, total=0, words=N_("Checking that all ways give the same numbers"))
    for case in cases_of(name, bench):
        say("case", **case.message())
        where = "" if case.x is None else f", {comparison.x_title.partition(' (')[0]} {case.x:,.0f}"
        _time(case, clock, count, f"Timing {case.part}{where}", say)
    say("end", peak_bytes=peak_bytes(device))


def limit_memory(share: float) -> None:
    """Let this process fail, rather than the machine, where a batch is too large for it."""
    if sys.platform != "linux":
        return
    import resource

    most = int(share * psutil.virtual_memory().available)
    _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def cases_of(name: str, bench: Bench) -> Iterator[BenchmarkCase]:
    """Return the cases of a comparison. Raises StudentError where it makes no sense."""
    why = COMPARISONS[name].why_not(bench.experiment)
    if why is not None:
        raise StudentError(why)
    from tfm_core.inspect.speed.bench import CASES

    return CASES[name](bench)


def clock_of(device: str) -> Clock:
    """Return CPU-seconds, or on a GPU the wall clock once its work is done."""
    if device != "mps" and not device.startswith("cuda"):
        return time.process_time
    import torch

    def after_work() -> float:
        if device == "mps":
            torch.mps.synchronize()
        else:
            torch.cuda.synchronize()
        return time.perf_counter()

    return after_work


def clock_name(device: str) -> str:
    """Return the name of the clock: CPU time or wall clock."""
    return "CPU" if device == "cpu" else N_("wall clock")


def peak_bytes(device: str) -> int:
    """Return the most memory used until now: of tensors on a GPU, of this process elsewhere."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().peak_wset)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _time(case: BenchmarkCase, clock: Clock, count: int, words: str, say: Emit) -> None:
    say("progress", done=0, total=count, words=words)
    sides = {name: side for name, side in case.sides.items() if side is not None}
    calls = {}
    for name, side in sides.items():
        seconds_of(side, 1, clock)
        once = max(seconds_of(side, 1, clock), 1e-6)
        calls[name] = min(MAX_CALLS, max(1, math.ceil(TURN / once)))
    begin = time.perf_counter()
    for done, seconds in enumerate(rounds(sides, calls, count=count, clock=clock), 1):
        say("round", seconds=seconds)
        say("progress", done=done, total=count, words=words)
        if done >= MIN_ROUNDS and time.perf_counter() - begin > LONG_ENOUGH:
            break


def _leave_with(stream: TextIO) -> None:
    """End this process when its input is closed: the server is gone."""
    stream.read()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())


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


def start_measurement(name: str, experiment: Experiment, device: str) -> BenchmarkProcess:
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
