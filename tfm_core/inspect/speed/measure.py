"""The measuring process: ``python -m tfm_core.inspect.speed.measure``.

It reads one line of JSON, ``{"name": ..., "experiment": {...}, "device": "cpu"}``, and writes lines
of JSON: ``progress``, ``case`` (checks and counts), ``round`` (seconds per call), then ``end`` or
``failed``. It exits when its input closes.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

import psutil

from tfm_core.choices.config import Experiment
from tfm_core.inspect.speed.paired import Clock, rounds, seconds_of
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import BenchmarkCase
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

Emit = Callable[..., None]


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
    say("progress", done=0, total=0, words=N_("Starting: loading PyTorch"))
    settle()
    from tfm_core.inspect.speed.bench import Bench

    comparison = COMPARISONS[name]
    say("progress", done=0, total=0, words=N_("Building the model and its data"))
    bench = Bench.of(experiment, device)
    clock = clock_of(device)
    say("progress", done=0, total=0, words=N_("Checking that all sides agree"))
    for case in cases_of(name, bench):
        say("case", **_checked(case))
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
    comparison = COMPARISONS[name]
    why = comparison.why_not(bench.experiment)
    if why is not None:
        raise StudentError(why)
    cases: Iterator[BenchmarkCase] = getattr(import_module(comparison.module), comparison.function)(
        bench
    )
    return cases


def settle() -> None:
    """Set one thread and no denormals."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def clock_of(device: str) -> Clock:
    """Return CPU-seconds, or on a GPU the wall clock once its work is done."""
    if device.startswith("cuda"):
        import torch

        def after_work() -> float:
            torch.cuda.synchronize()
            return time.perf_counter()

        return after_work
    if device == "mps":
        import torch

        def when_done() -> float:
            torch.mps.synchronize()
            return time.perf_counter()

        return when_done
    return time.process_time


def clock_name(device: str) -> str:
    """Return what the seconds are: CPU-seconds or those of a clock on the wall."""
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


def _checked(case: BenchmarkCase) -> dict[str, Any]:
    return {
        "part": case.part,
        "sides": list(case.sides),
        "x": case.x,
        "equalities": [asdict(one) for one in case.equalities],
        "n_bytes": dict(case.n_bytes),
        "facts": dict(case.facts),
    }


def _time(case: BenchmarkCase, clock: Clock, count: int, words: str, say: Emit) -> None:
    say("progress", done=0, total=count, words=words)
    calls = {}
    for name, side in case.sides.items():
        seconds_of(side, 1, clock)
        once = max(seconds_of(side, 1, clock), 1e-6)
        calls[name] = min(MAX_CALLS, max(1, math.ceil(TURN / once)))
    begin = time.perf_counter()
    for done, seconds in enumerate(rounds(case.sides, calls, count=count, clock=clock), 1):
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
