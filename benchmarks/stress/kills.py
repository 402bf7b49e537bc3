"""SIGKILL at exact calls that write: of the worker, of the server, and of both.

Each case trains a small model for real and kills a process at one of its writing calls: before it,
half done, or after. Then a fresh server, or worker, goes on until the run is finished, which must
be the same as one that was never killed, bit for bit: weights, optimiser, events, probe, snapshots,
best weights. Nothing may be left waiting, and no half file may be left over.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Skipped, Table
from benchmarks.stress import _forked
from benchmarks.stress._forked import contents, differences, leftovers
from benchmarks.stress._writes import watched
from tests.runs.waiting import tiny
from tfm_core.runs import Run, RunStore
from tfm_core.runs.process.requests import Control

SEED = 11
WHOLE, QUICK = 500, 12
WHO = ("worker", "worker", "worker", "server", "both")
WHEN = ("before", "half", "after")


@dataclass(slots=True)
class Case:
    """One run that was killed: by which calls, and what it came to."""

    who: str
    kills: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Kill until so many have died, and compare each run with one that was not killed."""
    if sys.platform != "linux":
        yield Skipped("Kills at exact writing calls", "it forks and adopts processes as Linux does")
        return
    begin = time.monotonic()
    cases = kill_runs(QUICK if quick else WHOLE, seed=SEED)
    rows = []
    for who in dict.fromkeys(WHO):
        mine = [case for case in cases if case.who == who]
        rows.append(
            (
                who,
                str(sum(len(case.kills) for case in mine)),
                str(len(mine)),
                str(sum(not case.failures for case in mine)),
                str(sum("lost" in case.failures for case in mine)),
            )
        )
    n_kills = sum(len(case.kills) for case in cases)
    kinds = Counter(" ".join(kill.split()[:2]) for case in cases for kill in case.kills)
    said = "; ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
    notes = [
        f"Seed {SEED}; {n_kills} kills in {time.monotonic() - begin:.0f} s. By call: {said}.",
        *(f"{case.who}, {case.kills}: {case.failures}." for case in cases if case.failures),
    ]
    columns = ("killed", "kills", "runs", "finished and bit-equal", "lost")
    yield Table("Kills at exact writing calls", columns, rows, notes)


def kill_runs(n_kills: int, *, seed: int) -> list[Case]:
    """Kill processes of runs until ``n_kills`` have died."""
    with _forked.reference() as (top, wanted):
        counts = _counts(top)
        rng, cases = random.Random(seed), list[Case]()
        while sum(len(case.kills) for case in cases) < n_kills:
            root = top / f"{len(cases)}"
            cases.append(_case(root, rng, counts, wanted))
            shutil.rmtree(root, ignore_errors=True)
        return cases


def _case(root: Path, rng: random.Random, counts: dict[str, int], wanted: dict[str, Any]) -> Case:
    who, note = rng.choice(WHO), root / "kills.txt"
    case = Case(who)
    (root / "runs").mkdir(parents=True)
    store = RunStore(root / "runs", recorded=None)
    try:
        if who == "worker":
            run = store.create(tiny())
            for _ in range(1 if rng.random() < 0.7 else 2):
                killer = _forked.Killer(rng.randint(1, counts["worker"]), rng.choice(WHEN), note)
                _forked.fork(lambda killer=killer: _forked.train_until_killed(run, killer))
                case.failures += _broken(_forked.wait_for_all()) + _unreadable(store)
            _forked.fork(lambda: _forked.train(run))
        else:
            killers = {
                name: _forked.Killer(rng.randint(1, counts[name]), rng.choice(WHEN), note)
                for name in ("server", "worker")
                if who in {name, "both"}
            }
            _forked.fork(lambda: _server(store, killers))
            case.failures += _broken(_forked.wait_for_all()) + _unreadable(store)
            runs = store.list()
            if not runs:  # killed before the run was there: nobody was told of one
                runs = [store.create(tiny())]
            run = runs[0]
            _forked.fork(lambda: _forked.serve(_forked.queue_of(store), run.id))
        case.failures += _broken(_forked.wait_for_all())
        case.failures += differences(contents(Run(run.folder)), wanted)
        case.failures += [f"left over: {name}" for name in leftovers(run.folder)]
    except (TimeoutError, OSError, ValueError) as error:
        case.failures += ["lost", str(error)]
    case.kills = note.read_text().splitlines() if note.exists() else []
    return case


def _server(store: RunStore, killers: dict[str, _forked.Killer]) -> None:
    """Make a run and train it, as a server does, until somebody is killed."""
    killer = killers.get("worker")

    def work(run: Run, control: Control) -> None:
        if killer is None or killer.note.exists():  # one kill each, or it would never get on
            _forked.train(run, control)
        else:
            _forked.train_until_killed(run, killer)

    def serve() -> None:
        queue = _forked.queue_of(store, work)
        run = store.create(tiny())
        queue.submit(run)
        _forked.serve(queue, run.id)

    if "server" not in killers:
        serve()
        return
    with watched(store.root, killers["server"]):
        serve()


def _broken(ended: dict[int, int]) -> list[str]:
    """Return which processes broke down by themselves: those that were killed did not."""
    return [f"a process ended with {code}" for code in ended.values() if code > 0]


def _unreadable(store: RunStore) -> list[str]:
    """Return what is wrong with the runs right after a kill."""
    return [f"unreadable: {run.problem}" for run in store.list() if run.problem is not None]


def _counts(top: Path) -> dict[str, int]:
    """Return how many writing calls a worker and a server make without a kill."""
    note = top / "counts.txt"

    def count(name: str, root: Path, work: Any) -> int:
        never = _forked.Killer(0, "before", note)

        def counted() -> None:
            with watched(root, never):
                work()
            note.write_text(str(never.count))

        _forked.fork(counted)
        if any(_forked.wait_for_all().values()):
            raise RuntimeError(f"the calls of a {name} could not be counted")
        return int(note.read_text())

    workers = RunStore(top / "worker", recorded=None)
    servers = RunStore(top / "server", recorded=None)
    run = workers.create(tiny())
    return {
        "worker": count("worker", workers.root, lambda: _forked.train(run)),
        "server": count("server", servers.root, lambda: _server(servers, {})),
    }
