"""Two servers and a command line on one folder: every run is trained once, by one at a time.

Each server may train one run at once, and so may both together.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.report import Skipped, Table
from benchmarks.stress import _forked
from benchmarks.stress._forked import contents, differences, leftovers
from tests.runs.waiting import tiny
from tfm_core import cli
from tfm_core.runs import Run, RunStore
from tfm_core.runs.process.requests import Control
from tfm_core.runs.queue import tickets

SEED = 17
WHOLE, QUICK = 40, 6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of some runs: most: how many servers' workers trained at the same moment."""

    n_runs: int
    n_by_hand: int
    most: int
    failures: list[str]


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Let two servers work through the same runs, then with a command line beside them."""
    if sys.platform != "linux":
        yield Skipped("Two servers and a command line", "it forks as Linux does")
        return
    rows, notes = [], [f"Seed {SEED}; each server has max_running 1."]
    for who, with_cli in (("two servers", False), ("two servers and a command line", True)):
        found = share_folder(QUICK if quick else WHOLE, seed=SEED, with_cli=with_cli)
        rows.append(
            (
                who,
                str(found.n_runs),
                str(found.n_by_hand),
                str(found.most),
                str(len(found.failures)),
            )
        )
        notes += [f"{who}: {failure}." for failure in found.failures]
    columns = ("on one folder", "runs", "trained by hand", "servers' at once", "failures")
    yield Table("Two servers and a command line on one folder", columns, rows, notes)


def share_folder(n_runs: int, *, seed: int, with_cli: bool) -> Outcome:
    """Train runs by two servers at once, and some by ``python -m tfm_core resume``."""
    with _forked.reference() as (top, wanted):
        store = RunStore(top / "runs", recorded=None)
        runs = [store.create(tiny()) for _ in range(n_runs)]
        for run in runs:
            tickets.add(store.root, run.id)
        log = top / "log.txt"
        log.touch()
        begun = [_forked.fork(lambda: _serve(store, runs, log)) for _ in range(2)]
        if with_cli:
            by_hand = partial(_resume_by_hand, store, runs, random.Random(seed))
            begun.append(_forked.fork(by_hand))
        ended = _forked.wait_for_all()  # Python's own helpers, too: what they say is not asked
        failures = [f"a process ended with {ended[pid]}" for pid in begun if ended[pid]]
        for run in runs:
            failures += [f"{run.id}: {name}" for name in differences(contents(run), wanted)]
            failures += [f"{run.id}: left over {name}" for name in leftovers(run.folder)]
            n_started = [record["event"] for record in run.reader().read()].count("started")
            if n_started != 1:
                failures.append(f"{run.id} was started {n_started} times")
        lines = [line.split() for line in log.read_text().splitlines()]
        by_servers = {run_id for run_id, what, _ in lines if what == "begin"}
        return Outcome(n_runs, n_runs - len(by_servers), _most(lines), failures)


def _serve(store: RunStore, runs: list[Run], log: Path) -> None:
    """Be a server until every run is finished."""

    def work(run: Run, control: Control) -> None:
        _note(log, f"{run.id} begin {time.monotonic()}")
        _forked.train(run, control)
        _note(log, f"{run.id} end {time.monotonic()}")

    queue = _forked.queue_of(store, work)
    end = time.monotonic() + _forked.DEADLINE_SECONDS
    while not all(run.status.state == "finished" for run in runs):
        _forked.turn(queue)
        if time.monotonic() > end:
            raise TimeoutError("runs wait for ever")
        time.sleep(0.002)
    queue.backend.close()


def _resume_by_hand(store: RunStore, runs: list[Run], rng: random.Random) -> None:
    """Resume waiting runs by hand."""
    _forked.hurry()
    os.environ["TFM_RUNS_DIR"] = str(store.root)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
        for run in rng.sample(runs, len(runs)):
            if run.status.state == "queued":
                cli.main(["resume", run.id, "--quiet"])


def _note(log: Path, line: str) -> None:
    file = os.open(log, os.O_APPEND | os.O_WRONLY)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def _most(lines: list[list[str]]) -> int:
    """Return the most runs that trained at the same moment."""
    now = most = 0
    for _, what, _when in sorted(lines, key=lambda line: (float(line[2]), line[1] == "begin")):
        now += 1 if what == "begin" else -1
        most = max(most, now)
    return most
