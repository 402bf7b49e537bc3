"""A class of 30: pupils open a lesson, start runs and press on, while their teacher watches.

They are websocket clients that ask as a browser does and draw nothing: what is measured is the
server, not thirty browsers on the same machine.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import Served, serve
from benchmarks.visitor import Visitor, visitor
from pages.ui.accounts import cookies
from tfm_core.runs.auth import new_token
from tfm_core.runs.store import RunStore

LESSON = "learning-rate"
PUPILS, EAGER = 30, 6
"""How many there are, and how many of them start two runs at once."""
SEED = 30
ARRIVE = 20.0
"""Seconds in which they come in."""
ACTS_EVERY = 10.0
"""Seconds between two presses of a pupil, on average; people read in between."""
PATIENCE = 60.0  # seconds

ANSWER, IN_TURN = "a class answered", "a class in turn"
"""Goals."""
_KEY = "the key of this benchmark"
_SETTINGS = {  # as docs/deploy.md has them for a class, on two cores
    "TFM_HOST_KEY": _KEY,
    "TFM_MAX_RUNNING": "1",
    "TFM_MAX_QUEUED": "99",
    "TFM_MAX_PER_SESSION": "2",
    "OMP_NUM_THREADS": "1",
}


@dataclass
class _Seen:
    """Seconds that everybody waited, and the cores that the server took.

    opened: pages; started: presses of Start; pressed: others.
    """

    opened: list[float] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    pressed: list[float] = field(default_factory=list)
    teacher: list[float] = field(default_factory=list)
    cores: float = 0.0


class _Line:
    """Notes whose runs leave the line, and who waits with a first run while a second one leaves."""

    def __init__(self, store: RunStore) -> None:
        """Begin to look; the runs that are there are nobody's."""
        self._store, self._ends = store, threading.Event()
        self.served, self.overtaken = Counter[str](), set[str]()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        waited = dict[str, str]()
        gone = {run.id for run in self._store.kept()}
        while not self._ends.wait(0.1):
            runs = self._store.kept()
            owners = {run.id: run.meta.owner or "" for run in runs if run.id not in gone}
            waits = {run.id for run in runs if run.status.state == "queued"}
            left = [run_id for run_id in owners if run_id not in waits]
            firsts = {
                owner for run_id, owner in waited.items()
                if run_id in waits and not self.served[owner]
            }  # fmt: skip
            if any(self.served[owners[run_id]] for run_id in left):
                self.overtaken |= firsts
            self.served.update(owners[run_id] for run_id in left)
            gone.update(left)
            waited = {run_id: owner for run_id, owner in owners.items() if run_id in waits}

    def close(self) -> None:
        """Look no longer."""
        self._ends.set()
        self._thread.join()


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Let a class work for a while."""
    seconds = 20.0 if quick else 100.0
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder), _SETTINGS) as served,
    ):
        served.await_warm_worker()
        _try(served)
        line = _Line(served.store)
        seen = _class(served, seconds)
        line.close()
    yield _waits(seen, seconds)
    yield _turns(line)


def _try(served: Served) -> None:
    """Do once what the class will do, as a teacher does before: all is imported then."""
    with visitor(served.url) as first:
        for page in ("lessons", "train"):
            first.visit(page, f"lesson={LESSON}", patience=PATIENCE)
        first.press("start", patience=PATIENCE)
    served.end_runs()


def _class(served: Served, seconds: float) -> _Seen:
    """Return what everybody waited for, pupils and teacher."""
    seen, generator, ends = _Seen(), random.Random(SEED), threading.Event()
    begin, spent = time.perf_counter() + 1.0, _processor_seconds(served)
    with ThreadPoolExecutor(PUPILS + 1) as pool:
        found = [pool.submit(_teach, served, seen, ends)]
        for number in range(PUPILS):
            comes = begin + ARRIVE * number / PUPILS
            own = random.Random(generator.random())
            is_eager = number < EAGER
            found.append(pool.submit(_learn, served, seen, ends, own, comes, is_eager))
        time.sleep(ARRIVE + seconds)
        ends.set()
        seen.cores = (_processor_seconds(served) - spent) / (time.perf_counter() - begin)
        for one in found:
            one.result()
    return seen


def _processor_seconds(served: Served) -> float:
    """Return what the server itself took of the processor, without its workers."""
    times = served.process.cpu_times()
    return times.user + times.system


def _learn(
    served: Served,
    seen: _Seen,
    ends: threading.Event,
    generator: random.Random,
    comes: float,
    is_eager: bool,
) -> None:
    """Come in, read the lesson, start, and press on."""
    time.sleep(max(0.0, comes - time.perf_counter()))
    query = f"lesson={LESSON}"
    with visitor(served.url, cookies={cookies.VISITOR: new_token()}) as pupil:
        seen.opened.append(pupil.visit("lessons", query, patience=PATIENCE))
        time.sleep(generator.uniform(0.5, 1.5) * 3)
        seen.opened.append(pupil.visit("train", query, patience=PATIENCE))
        time.sleep(generator.uniform(0.5, 1.5) * 3)
        seen.started.append(pupil.press("start", patience=PATIENCE))
        if is_eager:
            _start_again(pupil, seen)
        watched = pupil.watch(ends, acts_at=_times(generator))
        seen.pressed += watched.pages


def _start_again(pupil: Visitor, seen: _Seen) -> None:
    pupil.press("run-new", patience=PATIENCE)
    seen.started.append(pupil.press("start", patience=PATIENCE))


def _teach(served: Served, seen: _Seen, ends: threading.Event) -> None:
    """Watch everybody's runs."""
    token = new_token()
    shown = {cookies.VISITOR: token, cookies.HOST: cookies.hosts_proof(_KEY, token)}
    with visitor(served.url, cookies=shown) as teacher:
        query = f"view=runs&of={LESSON}"
        seen.teacher.append(teacher.visit("class", query, patience=PATIENCE))
        seen.teacher += teacher.watch(ends, acts_at=iter([float("inf")])).ticks


def _times(generator: random.Random) -> Iterator[float]:
    """Yield when a pupil presses something, as times of ``time.perf_counter``."""
    now = time.perf_counter() + generator.uniform(0, ACTS_EVERY)
    while True:
        yield now
        now += generator.uniform(0.5, 1.5) * ACTS_EVERY


def _waits(seen: _Seen, seconds: float) -> Table:
    rows, presses = [], [*seen.opened, *seen.started, *seen.pressed]
    for name, taken in (
        ("a page that is opened", seen.opened),
        ("Start", seen.started),
        ("a press while runs train", seen.pressed),
        ("every press of a pupil", presses),
        ("the teacher’s page, a tick", seen.teacher),
    ):
        if len(taken) < 2:
            raise RuntimeError(f"{name}: {len(taken)} answers are too few.")
        rows.append([name, f"{len(taken):,}", *(f"{value:.2f}" for value in _spread(taken)),
                     goal_cell(ANSWER, _spread(taken)[1]) if taken is presses else ""])  # fmt: skip
    return Table(
        f"What a class of {PUPILS} waits for",
        ["", "answers", "median, s", "p95, s", "longest, s", "target for p95"],
        rows,
        [
            f"They come in within {ARRIVE:g} s, then each presses about every {ACTS_EVERY:g} s for "
            f"{seconds:g} s, while one run after the other trains; seed {SEED}. "
            f"The server itself took {seen.cores:.2f} of a core."
        ],
        {ANSWER: Figure(_spread(presses)[1])},
    )


def _spread(taken: Sequence[float]) -> tuple[float, float, float]:
    p95 = statistics.quantiles(taken, n=20, method="inclusive")[-1]
    return statistics.median(taken), p95, max(taken)


def _turns(line: _Line) -> Table:
    """Return who waited with a first run while another pupil's second one was served."""
    count, overtaken = line.served, len(line.overtaken)
    return Table(
        "Whose run is next",
        ["", "pupils", "target"],
        [
            ["served", str(len(count)), ""],
            ["served twice", str(sum(n > 1 for n in count.values())), ""],
            [
                "waited with their first run meanwhile",
                str(overtaken),
                goal_cell(IN_TURN, overtaken),
            ],
        ],
        [f"{EAGER} of them start two runs at once, before the others have started one."],
        {IN_TURN: Figure(float(overtaken))},
    )
