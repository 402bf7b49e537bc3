"""The clock is set while a run trains, either way; a worker is suspended for a minute.

The clock of this machine is not touched: processes are told another time, as all that begin after
the step would read it, and as all that run would see it jump.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from benchmarks.report import Skipped, Table
from benchmarks.stress import _forked
from benchmarks.stress._forked import contents, differences
from tests.runs.waiting import tiny
from tfm_core.runs import Run, RunStore
from tfm_core.runs import status as statuses
from tfm_core.runs.process import execute
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.queue import claim
from tfm_core.training.events import Event, Step

STEPS_OF_THE_CLOCK = (-31_536_000, -3_600, -60, -6, 6, 60, 3_600, 31_536_000)
WHOSE = ("reader", "worker", "both")
_STOPPED, _STOPPED_QUICK = 60.0, 3.0
_LONG = 600  # steps of a run that is long enough to be suspended in the middle
_TOO_SLOW = 50
_ROUGHLY = 0.5  # seconds: what a busy machine may add


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Set the clock of the worker, of the reader, or of both; then suspend a worker."""
    if sys.platform != "linux":
        yield Skipped("Clocks that are set", "it forks as Linux does")
        return
    found = set_clocks(steps=(-3_600, 60) if quick else STEPS_OF_THE_CLOCK)
    rows = [
        (whose, str(len(mine)), str(sum(not wrong for *_, wrong in mine)))
        for whose in WHOSE
        if (mine := [one for one in found if one[0] == whose])
    ]
    told = [f"{whose}, {step:+} s: {wrong}." for whose, step, wrong in found if wrong]
    columns = ("whose clock is set", "steps", "one worker, seen alive, bit-equal")
    yield Table("Clocks that are set while a run trains", columns, rows, told)
    seconds, silent, trained, wrong = suspend(_STOPPED_QUICK if quick else _STOPPED)
    row = (f"{seconds:.0f} s", f"{silent:.0f} s", f"{trained:.1f} s", "; ".join(wrong) or "nothing")
    columns = ("suspended", "not heard of, as the page says", "counted until it is", "wrong")
    yield Table("A worker that is suspended (SIGSTOP)", columns, [row])


def set_clocks(*, steps: tuple[int, ...]) -> list[tuple[str, int, list[str]]]:
    """Return whose clock was set, by how much, and what went wrong."""
    with _forked.reference() as (top, wanted):
        store = RunStore(top / "runs", recorded=None)
        store.root.mkdir()
        return [
            (whose, step, _set(store, whose, step, wanted)) for whose in WHOSE for step in steps
        ]


def suspend(seconds: float) -> tuple[float, float, float, list[str]]:
    """Suspend a worker; return for how long, the silence reported, the time counted, and errors."""
    _forked.adopt()
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder), recorded=None)
        whole, run = store.create(tiny(_LONG)), store.create(tiny(_LONG))
        _forked.prepare(whole, hurried=False)
        pid = _forked.fork(lambda: _forked.train(run, hurried=False))
        before = _until(lambda: run.status if run.status.step > _LONG // 10 else None)
        os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        asleep = _until(lambda: run.status if run.status.silent >= seconds else None, seconds)
        wrong = [] if asleep.state == "running" else [f"it reads as {asleep.state}"]
        if seconds > statuses.SILENT_SECONDS and not asleep.is_silent:
            wrong.append("nothing is said of it")
        slept = time.monotonic() - begin
        os.kill(pid, signal.SIGCONT)
        after = _until(lambda: run.status if run.status.step > asleep.step else None)
        trained = after.seconds - before.seconds
        if trained > after.uptime - before.uptime - slept + _ROUGHLY:
            wrong.append(f"{trained:.1f} s count, {slept:.1f} of them asleep")
        _forked.wait_for_all()
        speeds = [float(one) for one in run.curves().steps["examples_per_second"]]
        if min(speeds) * _TOO_SLOW < statistics.median(speeds):
            wrong.append(f"{min(speeds):.0f} examples/s in the curve")
        wrong += differences(contents(run), contents(whole))
        return slept, asleep.silent, trained, wrong


def _set(store: RunStore, whose: str, step: int, wanted: dict[str, Any]) -> list[str]:
    run, go = store.create(tiny()), store.root / "go"
    go.unlink(missing_ok=True)

    def train() -> None:
        def listen(event: Event) -> None:
            if isinstance(event, Step) and event.step == 3:
                if whose != "reader":
                    _set_clock(step)
                _until(go.exists)

        _forked.hurry()
        execute.execute(Run(run.folder), None, listen)

    said = store.root / "said.txt"
    said.write_text("")
    _forked.fork(train)
    _until(lambda: run.status.step >= 3)

    def look() -> None:
        if whose != "worker":
            _set_clock(step)
        try:
            said.write_text("\n".join(_seen(store, run)))
        finally:
            go.touch()

    _forked.fork(look)
    if any(_forked.wait_for_all().values()):
        return ["a process broke down"]
    return said.read_text().splitlines() + differences(contents(Run(run.folder)), wanted)


def _seen(store: RunStore, run: Run) -> list[str]:
    """Return what is wrong with how a run that trains looks from another process."""
    wrong, status = [], run.status
    if status.state != "running":
        wrong.append(f"it reads as {status.state}")
    if status.is_silent:
        wrong.append(f"not heard of for {status.silent:.0f} s")
    queue = _forked.queue_of(store)
    if queue.n_running() != 1:
        wrong.append(f"{queue.n_running()} run")
    if claim.take(run.folder, process_id()):
        wrong.append("a second process was let in")
    try:
        queue.resume(run)
        wrong.append("it could be resumed")
    except ValueError:
        pass
    try:
        execute.execute(Run(run.folder))
        wrong.append("a second worker trained it")
    except claim.RunHeld:
        pass
    return wrong


def _set_clock(seconds: int) -> None:
    """Let this process read another time, and psutil another start of the machine."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + seconds * 10**9
    platform: Any = getattr(psutil, "_psplatform", None)
    if hasattr(platform, "boot_time"):
        boot = platform.boot_time
        platform.boot_time = lambda: boot() + seconds


def _until(condition: Callable[[], Any], seconds: float = 0.0) -> Any:
    """Return the first true value of a condition. Raises TimeoutError."""
    end = time.monotonic() + seconds + _forked.DEADLINE_SECONDS
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(0.005)
    return value
