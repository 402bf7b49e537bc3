"""Many sessions on one live run: twenty watch it tick and press buttons, and it trains on.

They are websocket clients that ask for each tick as a browser does, and draw nothing: what is
measured is the server and the training, not twenty browsers on the same machine.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psutil

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import Served, per_step, serve, wait_until
from benchmarks.timing import TimeRange, milliseconds, ratio
from benchmarks.visitor import PATIENCE, Watched, visitor
from tfm_core.presets import PRESETS
from tfm_core.runs.queue import tickets
from tfm_core.runs.run import Run

PRESET = "vit-digits"
SESSIONS = 20
SEED = 20
ACTS_EVERY = 10.0
"""Seconds between two things that one session does, on average; people read in between."""

ANSWER, SLOWDOWN, MEMORY = "20 sessions answered", "20 sessions' cost", "a session's memory"
"""Goals."""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Watch a run with twenty sessions and with none, in turns."""
    rounds, seconds = (1, 10.0) if quick else (5, 20.0)
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as served:
        run = start_long_run(served)
        worker = psutil.Process(run.status.pid)
        generator = random.Random(SEED)
        paces: dict[str, list[tuple[float, float]]] = {"alone": [], "watched": []}
        watched = Watched()
        with visitor(served.url) as first:  # what a page needs is imported once for all
            first.visit("train", f"run={run.id}")
        before, memory = served.process.memory_info().rss, 0
        for number in range(2 * rounds):
            for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
                seen = _sessions(served, run, generator, watched)
                with seen if kind == "watched" else nullcontext():
                    paces[kind].append(per_step(run, worker, lambda: time.sleep(seconds)))
                    memory = max(memory, served.process.memory_info().rss)
        if not run.status.is_alive:
            raise RuntimeError(f"The run ended while it was watched: {run.status}")
    yield _answers(watched)
    yield slowdown(SLOWDOWN, f"{SESSIONS} sessions", paces, 2 * rounds, seconds)
    yield _memory(before, memory)


def start_long_run(served: Served) -> Run:
    """Put a preset with far more steps than will be trained into the line of the server."""
    experiment = PRESETS[PRESET].experiment
    longer = experiment.training.replace(steps=100_000)
    served.await_warm_worker()
    run = served.store.create(experiment.replace(training=longer.model_dump()))
    tickets.add(served.store.root, run.id)
    wait_until(lambda: run.status.step > 0, "the first step")
    return run


@contextmanager
def _sessions(served: Served, run: Run, generator: random.Random, into: Watched) -> Iterator[None]:
    """Let sessions watch a run during the block, which starts once all have drawn it."""
    drawn, ends = threading.Barrier(SESSIONS + 1), threading.Event()

    def watch(seed: float) -> Watched:
        with visitor(served.url) as session:
            session.visit("train", f"run={run.id}")
            drawn.wait(PATIENCE)
            return session.watch(ends, acts_at=_times(random.Random(seed)))

    with ThreadPoolExecutor(SESSIONS) as pool:
        found = [pool.submit(watch, generator.random()) for _ in range(SESSIONS)]
        try:
            drawn.wait(PATIENCE)
            yield
        finally:
            ends.set()
    for one in found:
        watched = one.result()
        into.pages += watched.pages
        into.ticks += watched.ticks


def _times(generator: random.Random) -> Iterator[float]:
    """Yield when a session does something, as times of ``time.perf_counter``."""
    now = time.perf_counter() + generator.uniform(0, ACTS_EVERY)
    while True:
        yield now
        now += generator.uniform(0.5, 1.5) * ACTS_EVERY


def _answers(watched: Watched) -> Table:
    rows, reached = [], {}
    for name, taken, goal in (
        ("the page, after a press", watched.pages, ANSWER),
        ("a part that ticks", watched.ticks, None),
    ):
        worst = statistics.quantiles(taken, n=20, method="inclusive")[-1]
        if goal is not None:
            reached[goal] = Figure(worst)
        verdict = "" if goal is None else goal_cell(goal, worst)
        rows.append(
            [
                name,
                f"{len(taken):,}",
                *(f"{value:.2f}" for value in (statistics.median(taken), worst, max(taken))),
                verdict,
            ]
        )
    return Table(
        f"What {SESSIONS} sessions wait for while they watch one run train",
        ["", "answers", "median, s", "p95, s", "longest, s", "target for p95"],
        rows,
        [f"Each presses about every {ACTS_EVERY:g} seconds; seed {SEED}."],
        reached,
    )


def _memory(before: int, most: int) -> Table:
    each = (most - before) / 1e6 / SESSIONS
    return Table(
        f"The server's memory while {SESSIONS} sessions watch",
        ["", "MB resident", "target"],
        [
            ["before, one session has come and gone", f"{before / 1e6:,.0f}", ""],
            ["at most", f"{most / 1e6:,.0f}", ""],
            ["a session", f"{each:.1f}", goal_cell(MEMORY, each)],
        ],
        ["Over all turns: what an earlier session left and none uses counts, too."],
        {MEMORY: Figure(each)},
    )


def slowdown(
    goal: str, crowd: str, paces: dict[str, list[tuple[float, float]]], pairs: int, seconds: float
) -> Table:
    """Return how much slower a step is for a crowd that watches, such as ``"20 sessions"``.

    paces: seconds a step, by the clock and of the worker's CPU, of turns alone and watched.
    """
    rows, reached = [], {}
    for row, clock in enumerate(("wall clock", "CPU of the worker")):
        alone, watched = ([pair[row] for pair in paces[kind]] for kind in ("alone", "watched"))
        slower = ratio(watched, alone)
        spread = TimeRange(
            *(100 * (value - 1) for value in (slower.median, slower.low, slower.high))
        )
        if row == 0:
            reached[goal] = Figure(spread.median)
        verdict = goal_cell(goal, spread.median) if row == 0 else ""
        rows.append([clock, *(milliseconds(values).show() for values in (alone, watched)),
                     spread.show(" %", 1), verdict])  # fmt: skip
    return Table(
        f"A training step of {PRESET}, alone and watched by {crowd}",
        ["", "alone, ms", "watched, ms", "slower by", "target"],
        rows,
        [f"{pairs} pairs of {seconds:g} seconds, there and back; who watches takes cores, too."],
        reached,
    )
