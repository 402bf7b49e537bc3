"""Power cuts at every writing call of a run: what is left opens, and resumes to the same end.

The cuts are simulated. ``Disk`` follows each call and says what a cut leaves: a file's content as
of its last ``fsync``, a folder's names as of the folder's last one. What was not synced may survive
or not, each part by itself: all is lost, or names came without content, or content without names.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Skipped, Table
from benchmarks.stress import _forked
from benchmarks.stress._forked import contents, differences
from benchmarks.stress._writes import Call, watched
from tests.runs.waiting import tiny
from tfm_core.runs import Run, RunStore

SEED = 13
QUICK = 12
WAYS = {
    "all that was not synced is lost": {"names": False, "content": False},
    "names came without content": {"names": True, "content": False},
    "content came without names": {"names": False, "content": True},
}


Kept = dict[str, bytes | None]
"""What is on a disk: content by path, None for a folder."""


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
    n_calls, found = cut_power(QUICK if quick else None, seed=SEED)
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


def cut_power(most: int | None, *, seed: int) -> tuple[int, list[tuple[Cut, list[str]]]]:
    """Cut the power; return how many calls there were, and what went wrong after each cut.

    most: so many of the different remains of each way are tried, or all.
    """
    with _forked.reference() as (top, wanted):
        n_calls, cuts = _cuts(top / "cut")
        rng, found = random.Random(seed), list[tuple[Cut, list[str]]]()
        for way in WAYS:
            mine = [cut for cut in cuts if cut.way == way]
            # what is left at the very end has most to lose
            few = (
                [*rng.sample(mine[:-1], min(most or 0, len(mine)) - 1), mine[-1]] if most else mine
            )
            found += [(cut, _wrong(cut, top / "left", wanted)) for cut in few]
        return n_calls, found


def _cuts(root: Path) -> Recorded:
    """Train a run in a child, and return what a power cut leaves at each call."""
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
    """Restore what a cut has left, resume, and return what is wrong with the result."""
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


@dataclass(eq=False, slots=True)
class _File:
    """The content as written, and as it was at the last fsync."""

    written: bytes = b""
    kept: bytes = b""


@dataclass(eq=False, slots=True)
class _Folder:
    """The names in a folder now, and as they were at its last fsync."""

    names: dict[str, _File | _Folder] = field(default_factory=dict)
    kept: dict[str, _File | _Folder] = field(default_factory=dict)


class Disk:
    """What a folder holds, call by call, and what is left of it when the power goes."""

    def __init__(self, root: Path) -> None:
        """Begin with all that is in a folder now, which is on the disk."""
        self.root = root.resolve()
        self._top = _read(self.root)

    def take(self, call: Call) -> None:
        """Follow a call that was made."""
        parts = self._parts(call.path)
        folder, name = self._folder(parts[:-1]), parts[-1] if parts else ""
        if call.name == "fsync":
            self._sync(parts)
        elif call.name == "mkdir":
            folder.names[name] = _Folder()
        elif call.name == "open":
            folder.names[name] = _File()
        elif call.name == "write":
            file = folder.names.get(name)
            if isinstance(file, _File):  # else it is written on after it lost its name
                file.written += call.data
        elif call.name == "truncate":
            file = folder.names[name]
            assert isinstance(file, _File)
            file.written = b""
        elif call.name in {"unlink", "remove", "rmdir"}:
            folder.names.pop(name, None)
        else:
            target = self._parts(call.target)
            moved = folder.names[name] if call.name == "link" else folder.names.pop(name)
            self._folder(target[:-1]).names[target[-1]] = moved

    def left(self, *, names: bool, content: bool) -> Kept:
        """Return what a power cut leaves: all that was synced.

        names, content: these reached the disk even where they were not synced.
        """
        found: Kept = {}

        def walk(folder: _Folder, above: str) -> None:
            for name, thing in (folder.names if names else folder.kept).items():
                path = f"{above}{name}"
                if isinstance(thing, _Folder):
                    found[path] = None
                    walk(thing, f"{path}/")
                else:
                    found[path] = thing.written if content else thing.kept

        walk(self._top, "")
        return found

    def _parts(self, path: str) -> list[str]:
        relative = os.path.relpath(path, self.root)
        return [] if relative == "." else relative.split(os.sep)

    def _folder(self, parts: list[str]) -> _Folder:
        here = self._top
        for part in parts:
            below = here.names[part]
            assert isinstance(below, _Folder)
            here = below
        return here

    def _sync(self, parts: list[str]) -> None:
        thing: Any = self._folder(parts[:-1]).names.get(parts[-1]) if parts else self._top
        if isinstance(thing, _Folder):
            thing.kept = dict(thing.names)
        elif thing is not None:
            thing.kept = thing.written


def lay_out(kept: Kept, root: Path) -> None:
    """Write what a power cut has left into a new folder."""
    root.mkdir(parents=True)
    for path, content in kept.items():
        if content is None:
            (root / path).mkdir(parents=True, exist_ok=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)


def _read(folder: Path) -> _Folder:
    found: dict[str, _File | _Folder] = {}
    for path in folder.iterdir():
        if path.is_dir():
            found[path.name] = _read(path)
        else:
            found[path.name] = _File(path.read_bytes(), path.read_bytes())
    return _Folder(found, dict(found))
