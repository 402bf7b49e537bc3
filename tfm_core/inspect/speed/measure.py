"""Timing, and the measuring process: ``python -m tfm_core.inspect.speed.measure``.

Every side runs in every round, there and back (A B B A): a machine that slows down slows all sides
of a round alike, so ratios within a round hold.

The process reads one line of JSON, ``{"name": ..., "experiment": {...}, "device": "cpu"}``, and
writes lines of JSON: ``progress``, ``case`` (checks and counts), ``round`` (seconds per call), then
``end`` or ``failed``. It exits when its input closes.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

import psutil

from tfm_core.choices.config import Experiment, ModelConfig
from tfm_core.inspect.speed.report import BATCH, COMPARISONS, BenchmarkCase
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
