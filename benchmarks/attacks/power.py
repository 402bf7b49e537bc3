"""The power goes at every writing call of a run: what is left opens, and goes on to the same end.

No power is cut. Each call that a run makes is recorded; a small model of a disk says what is left
at each of them where what was not synced is lost, or its names came to the disk without their
content, or the content without the names. What is left is laid out as a folder of runs, and the
run is trained on from there.
"""

from __future__ import annotations

import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.attacks import _forked
from benchmarks.attacks._power import Disk, Kept, lay_out
from benchmarks.attacks._same import contents, differences
from benchmarks.attacks._writes import Call, watched
from benchmarks.report import Skipped, Table
from tests.runs.waiting import tiny
from tfm_core.runs import Run, RunStore

SEED = 13
QUICK = 12
WAYS = {
    "all that was not synced is lost": {"names": False, "content": False},
    "names came without content": {"names": True, "content": False},
    "content came without names": {"names": False, "content": True},
}


@dataclass(frozen=True, slots=True)
class Cut:
    """What a power cut left: after which call, in which way, and what it should come to."""

    way: str
    call: int
    kept: Kept


Recorded = tuple[int, list[Cut]]
"""How many calls there were, and what a power cut would have left after them."""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Cut the power at each call, in each way; of equal remains one is trained on."""
    if sys.platform != "linux":
        yield Skipped("Power cuts", "it forks as Linux does")
        return
    begin = time.monotonic()
    n_calls, found = attack(QUICK if quick else None, seed=SEED)
    rows = [
        (
            way,
            str(n_calls),
            str(sum(cut.way == way for cut, _ in found)),
            str(sum(cut.way == way and not wrong for cut, wrong in found)),
        )
        for way in WAYS
    ]
    notes = [
        f"Seed {SEED}; {time.monotonic() - begin:.0f} s. The run checkpoints every step.",
        *(f"After call {cut.call}, {cut.way}: {wrong}." for cut, wrong in found if wrong),
    ]
    columns = ("when the power goes", "cuts", "different remains tried", "opened and bit-equal")
    yield Table("Power cuts at every writing call", columns, rows, notes)


def attack(most: int | None, *, seed: int) -> tuple[int, list[tuple[Cut, list[str]]]]:
    """Cut the power; return how many calls there were, and what went wrong after each cut.

    most: so many of the different remains of each way are tried, or all.
    """
    _forked.adopt()
    base = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=base if base.is_dir() else None) as folder:
        top = Path(folder)
        whole = RunStore(top / "whole", recorded=None).create(tiny())
        _forked.prepare(whole)
        n_calls, cuts = _cuts(top / "cut")
        rng, found = random.Random(seed), list[tuple[Cut, list[str]]]()
        for way in WAYS:
            mine = [cut for cut in cuts if cut.way == way]
            # what is left at the very end has most to lose
            few = (
                [*rng.sample(mine[:-1], min(most or 0, len(mine)) - 1), mine[-1]] if most else mine
            )
            found += [(cut, _wrong(cut, top / "left", contents(whole))) for cut in few]
        return n_calls, found


def _cuts(root: Path) -> Recorded:
    """Train a run in a child, and return what is left of it where the power goes, call by call."""
    reading, writing = multiprocessing.Pipe(duplex=False)
    _forked.fork(lambda: writing.send(_recorded(root)))
    recorded: Recorded = reading.recv()
    _forked.wait_for_all()
    return recorded


def _recorded(root: Path) -> Recorded:
    root.mkdir(parents=True)
    store, disk = RunStore(root, recorded=None), Disk(root)
    cuts: list[Cut] = []
    seen: dict[str, list[Kept]] = {way: [] for way in WAYS}
    n_calls = 0

    def record(call: Call, do: Callable[[], Any], half: Callable[[], Any]) -> Any:
        nonlocal n_calls
        made = None if call.name == "fsync" else do()
        disk.take(call)
        n_calls += 1
        for way, how in WAYS.items():
            kept = disk.left(**how)
            if kept not in seen[way]:
                seen[way].append(kept)
                cuts.append(Cut(way, n_calls, kept))
        return made

    with watched(root, record):
        _forked.train(store.create(tiny()))
    return n_calls, cuts


def _wrong(cut: Cut, root: Path, wanted: dict[str, Any]) -> list[str]:
    """Lay out what a cut has left, go on, and return what is wrong with what it came to."""
    shutil.rmtree(root, ignore_errors=True)
    lay_out(cut.kept, root)
    store = RunStore(root, recorded=None)
    runs = store.list()
    if not runs:  # the run was not there yet, nobody had been told of it
        return []
    (run,) = runs
    if run.problem is not None:
        return [run.problem]
    if run.status.state == "finished":
        return differences(contents(run), wanted)
    _forked.fork(lambda: _forked.train(run))
    if any(_forked.wait_for_all().values()):
        return [f"it could not go on: {run.status}"]
    return differences(contents(Run(run.folder)), wanted)
