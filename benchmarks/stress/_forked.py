"""Servers and workers forked from one process that has torch imported: cheap to kill.

The parent has one thread and trains nothing itself, so a child starts like a fresh process. Workers
run the app's own code; only the start of their process differs. ``contents`` says what a run came
to, so that two runs can be compared bit for bit.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from safetensors import safe_open

from benchmarks.stress._writes import Call, watched
from tests.runs.waiting import tiny
from tfm_core.runs import Run, RunStore
from tfm_core.runs.backends.local import LocalWorkers
from tfm_core.runs.disk.atomic import read_json
from tfm_core.runs.process import execute, recorder
from tfm_core.runs.process.identity import ProcessId, process_id
from tfm_core.runs.process.requests import Control
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue

DEADLINE_SECONDS = 240.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def adopt() -> None:
    """Let the workers of a server that was killed become children of this process."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def reference() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a folder in memory, and the contents of a run that was never interrupted."""
    adopt()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        run = RunStore(Path(folder) / "reference", recorded=None).create(tiny())
        prepare(run)
        yield Path(folder), contents(run)


def prepare(run: Run, *, hurried: bool = True) -> None:
    """Train a run in a child, and import what it imported, so that no other child has to.

    This process never trains: the threads of autograd would not survive a fork. Raises RuntimeError
    where the run did not finish.
    """
    names = run.folder.parent / "modules.txt"

    def work() -> None:
        train(run, hurried=hurried)
        names.write_text("\n".join(list(sys.modules)))

    fork(work)
    if any(wait_for_all().values()) or run.status.state != "finished":
        raise RuntimeError(f"the run to compare with is {run.status}")
    for name in names.read_text().split():
        with contextlib.suppress(Exception):  # some are made by the modules that use them
            importlib.import_module(name)


def fork(work: Callable[[], object]) -> int:
    """Do something in a child; return its process number. It exits with 0, or 1 if it raised."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait_for_all() -> dict[int, int]:
    """Wait until this process has no children, adopted ones too; return how each ended.

    A negative number is the signal that killed it. Raises TimeoutError where one goes on and on.
    """
    ended, end = {}, time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid:
            ended[pid] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() > end:
            raise TimeoutError(f"a child still runs; {len(ended)} have ended")
        else:
            time.sleep(0.002)


class Killer:
    """A watcher of calls that kills its process at one of them: before it, half done, or after."""

    def __init__(self, number: int, when: str, note: Path) -> None:
        """Kill at call ``number``, from 1. note: a file to which the call is appended before."""
        self.number, self.when, self.note, self.count = number, when, note, 0

    def __call__(self, call: Call, do: Callable[[], object], half: Callable[[], object]) -> object:
        """Make a call, or die of it."""
        self.count += 1
        if self.count != self.number:
            # what is written stays when a process is killed: only a power cut needs more
            return None if call.name == "fsync" else do()
        if self.when == "half":
            half()
        elif self.when == "after":
            do()
        with self.note.open("a") as file:
            file.write(f"{self.when} {call.name} {Path(call.path).name}\n")
        return _die()


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process outlived its SIGKILL")


def hurry() -> None:
    """Let this process write all that it can: a checkpoint a step, and many heartbeats."""
    execute.CHECKPOINT_SECONDS, execute.CHECKPOINT_SHARE = 0.0, 0
    recorder.STATUS_SECONDS, recorder.HEARTBEAT_SECONDS = 0.005, 0.01


def train(run: Run, control: Control | None = None, *, hurried: bool = True) -> None:
    """Train a run in this process; hurried: it writes all that it can (see ``hurry``)."""
    if hurried:
        hurry()
    execute.execute(Run(run.folder), control)


def train_until_killed(run: Run, killer: Killer) -> None:
    """Train a run in this process, watched by a killer."""
    with watched(run.folder.parent, killer):
        train(run)


class ForkedWorker:
    """A worker as the queue knows it (see ``pool.WorkerProcess``), forked."""

    def __init__(self, work: Callable[[Run, Control], None]) -> None:
        """Fork it; it waits for its order, and ends if its server dies before that."""
        reading, self._order = os.pipe()
        self._then: Callable[[], None] | None = None
        self.process = SimpleNamespace(pid=0, returncode=None)

        def wait() -> None:
            os.close(self._order)
            os.setsid()
            with os.fdopen(reading, "rb") as file:
                line = file.readline()
            if line.endswith(b"\n"):
                order = json.loads(line)
                limits = {name: order[name] for name in ("max_seconds", "max_pause")}
                folder = Path(order["folder"])
                work(Run(folder), Control(folder, **limits))

        self.process.pid = fork(wait)
        os.close(reading)
        self.mark: ProcessId = process_id(self.process.pid)

    def output(self) -> list[str]:
        """Return nothing: it shares its server's output."""
        return []

    def send(
        self, folder: Path, *, max_seconds: float | None = None, max_pause: float | None = None
    ) -> None:
        """Assign a run."""
        order = {"folder": str(folder), "max_seconds": max_seconds, "max_pause": max_pause}
        os.write(self._order, json.dumps(order).encode() + b"\n")
        os.close(self._order)

    def watch(self, *, freed: Callable[[], None], ended: Callable[[], None]) -> None:
        """Call ``ended`` once it has ended; ``reap`` looks whether it has. It trains one run."""
        self._then = ended

    def reap(self) -> bool:
        """Return whether the process has ended, and call what waits for that."""
        if self.process.returncode is None:
            pid, status = os.waitpid(self.process.pid, os.WNOHANG)
            if not pid:
                return False
            self.process.returncode = os.waitstatus_to_exitcode(status)
            if self._then is not None:
                self._then()
        return True

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return not self.reap()

    def end(self) -> None:
        """End a process that has no run yet."""
        os.kill(self.process.pid, signal.SIGKILL)
        os.waitpid(self.process.pid, 0)

    def close(self) -> None:
        """Do nothing: it has no log."""


class ForkPool:
    """A pool of workers as the queue knows it (see ``pool.WarmPool``): none waits warm."""

    def __init__(self, work: Callable[[Run, Control], None] = train) -> None:
        """Let each worker do some work with its run."""
        self._work, self._spare, self._given = work, list[ForkedWorker](), list[ForkedWorker]()

    def take(self) -> ForkedWorker:
        """Return a worker, held until ``reap`` finds that it has ended."""
        worker = self._spare.pop() if self._spare else ForkedWorker(self._work)
        self._given.append(worker)
        return worker

    def put_back(self, worker: ForkedWorker) -> None:
        """Take an unused worker back."""
        self._given.remove(worker)
        self._spare.append(worker)

    def reap(self) -> None:
        """Do what is due for workers that have ended."""
        self._given = [worker for worker in self._given if not worker.reap()]

    def fill(self) -> None:
        """Keep none waiting."""

    def n_ready(self) -> int:
        """Return 1: a fork begins at once."""
        return 1

    def close(self) -> None:
        """End those that wait."""
        for worker in self._spare:
            worker.end()


def queue_of(
    store: RunStore, work: Callable[[Run, Control], None] = train, *, max_running: int = 1
) -> RunQueue:
    """Return a queue that forks its workers; ``turn`` is its thread."""
    queue = RunQueue(store, max_running=max_running, warm=0, limits=Limits())
    assert isinstance(queue.backend, LocalWorkers)
    queue.backend.pool = ForkPool(work)  # type: ignore[assignment]
    return queue


def turn(queue: RunQueue) -> None:
    """Let a queue do what its thread does at one look."""
    assert isinstance(queue.backend, LocalWorkers)
    pool = queue.backend.pool
    assert isinstance(pool, ForkPool)
    pool.reap()
    queue.step()


def serve(queue: RunQueue, run_id: str) -> None:
    """Be a server until a run is finished; one that is interrupted is resumed, as by a visitor.

    Raises TimeoutError where the run waits for ever.
    """
    queue._mend(at_once=True)
    end = time.monotonic() + DEADLINE_SECONDS / 2
    while True:
        turn(queue)
        run = queue.store.get(run_id)
        state = run.status.state
        if state == "finished":
            break
        if run.status.can_resume and queue.position(run_id) is None:
            queue.resume(run)
        if time.monotonic() > end:
            raise TimeoutError(f"the run is {run.status}")
        time.sleep(0.002)
    queue.backend.close()


_TIMES = {"examples_per_second", "memory_bytes", "seconds", "cpu_seconds"}


def contents(run: Run) -> dict[str, Any]:
    """Return all that a run came to: state, weights, optimiser, events, probe, snapshots, best."""
    status = run.status
    found: dict[str, Any] = {
        "status": (status.state, status.step, status.total_steps),
        "problem": run.problem,
        "events": _events(run),
        "best.json": read_json(run.folder / "best.json"),
        "probe.json": read_json(run.folder / "probe.json"),
        "steps": run.snapshot_steps(),
    }
    parts = [run.folder / "probe.safetensors", *run.folder.glob("snapshots/*.safetensors")]
    for path in (*parts, *run.folder.glob("checkpoints/*/checkpoint.safetensors")):
        if path.exists():
            found[str(path.relative_to(run.folder))] = tensors(path)
    return found


def leftovers(folder: Path) -> list[str]:
    """Return the names of files that were never given their own."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.name.startswith(".") or path.name.endswith(".new")
    )


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what two runs differ in."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def tensors(path: Path) -> dict[str, str]:
    """Return what a safetensors file holds: a digest a tensor, and its facts without times."""
    with safe_open(path, framework="numpy") as file:
        facts = dict(file.metadata() or {})
        found = {
            name: f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
            for name in file.keys()  # noqa: SIM118
            for value in [file.get_tensor(name)]
        }
    if "trainer" in facts:
        trainer = json.loads(facts["trainer"])
        facts["trainer"] = json.dumps({k: v for k, v in trainer.items() if k not in _TIMES})
    return found | {f"metadata {name}": value for name, value in facts.items()}


def _events(run: Run) -> list[dict[str, Any]]:
    """Return what the events say once nothing more is to be forgotten, without times."""
    kept: list[dict[str, Any]] = []
    for record in run.reader().read():
        if record["event"] == "resumed":
            kept = [old for old in kept if old["step"] <= record["step"]]
        elif record["event"] != "started":
            told = {key: value for key, value in record.items() if key not in _TIMES}
            if told not in kept:  # the end is told again where it came just before the kill
                kept.append(told)
    return kept
