"""A published run with a thousand watchers: their waiting times and their cost.

They are real connections to a real server on this machine, and ask as the page does; the clients,
in a process of their own (``benchmarks.crowd``), take their share of the same cores.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import per_step, serve, wait_until
from benchmarks.stress.sessions import slowdown, start_long_run
from tfm_core.hosting.published.folder import STATE
from tfm_core.hosting.published.shelf import Shelf

WATCHERS = 1000
ARRIVE_SECONDS = 20.0
"""In which all open the page, one after the other."""

ANSWER, SLOWDOWN, MEMORY = "1000 watchers answered", "1000 watchers' cost", "1000 watchers' memory"
"""Goals."""


@dataclass
class Crowd:
    """What the watchers of all turns saw, and what the server spent on them."""

    turns: list[dict[str, Any]] = field(default_factory=list)
    cpu_seconds: float = 0.0
    rss: list[int] = field(default_factory=list)

    def all(self, name: str) -> list[float]:
        """Return the seconds of a name, of all turns."""
        return [value for turn in self.turns for value in turn[name]]

    def total(self, name: str) -> float:
        """Return the sum of a name over all turns."""
        return float(sum(turn[name] for turn in self.turns))


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Let a run train alone and watched by a thousand, in turns."""
    rounds, seconds = (1, 10.0) if quick else (3, 20.0)
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as served:
        run = start_long_run(served)
        worker = psutil.Process(run.status.pid)
        published = Shelf(served.store.root.resolve()).publish(run.id, most=1)
        wait_until(lambda: (published.folder / STATE).is_file(), "the published page")
        paces: dict[str, list[tuple[float, float]]] = {"alone": [], "watched": []}
        seen, before = Crowd(), served.process.memory_info().rss
        for number in range(2 * rounds):
            for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
                if kind == "alone":
                    paces[kind].append(per_step(run, worker, lambda: time.sleep(seconds)))
                    continue
                with served.crowd(f"live/{published.token}", WATCHERS, ARRIVE_SECONDS) as turn:
                    begin = served.process.cpu_times()
                    paces[kind].append(per_step(run, worker, lambda: time.sleep(seconds)))
                    end = served.process.cpu_times()
                    seen.rss.append(served.process.memory_info().rss)
                seen.turns.append(turn)
                seen.cpu_seconds += end.user + end.system - begin.user - begin.system
        if not run.status.is_alive:
            raise RuntimeError(f"The run ended while it was watched: {run.status}")
    yield _answers(seen)
    yield slowdown(SLOWDOWN, f"{WATCHERS:,} watchers", paces, 2 * rounds, seconds)
    yield _spent(seen, before)


def _answers(seen: Crowd) -> Table:
    rows, reached = [], {}
    for name, taken, goal in (
        ("a request, while it trains", seen.all("requests"), ANSWER),
        ("the whole page, at first", seen.all("arrivals"), None),
    ):
        parts = statistics.quantiles(taken, n=100, method="inclusive")
        if goal is not None:
            reached[goal] = Figure(parts[94])
        verdict = "" if goal is None else goal_cell(goal, parts[94])
        numbers = (parts[49], parts[94], parts[98], max(taken))
        rows.append([name, f"{len(taken):,}", *(f"{value:.3f}" for value in numbers), verdict])
    failed = int(seen.total("n_failed"))
    problem = next((turn["problem"] for turn in seen.turns if turn["problem"]), "")
    return Table(
        f"What {WATCHERS:,} watchers of a published run wait for",
        ["", "answers", "median, s", "p95, s", "p99, s", "longest, s", "target for p95"],
        rows,
        [
            f"All arrive within {ARRIVE_SECONDS:g} s, and then ask as often as run.json says.",
            f"{failed:,} requests failed.{f' The first: {problem}' if problem else ''}",
        ],
        reached,
    )


def _spent(seen: Crowd, before: int) -> Table:
    seconds, n = seen.total("seconds"), len(seen.all("requests"))
    at_first = seen.total("first_bytes") / WATCHERS / len(seen.turns)
    then = seen.total("bytes") / WATCHERS / seconds
    grown = (max(seen.rss) - before) / 1e6
    rows: Sequence[Sequence[str]] = [
        ["requests a second", f"{n / seconds:,.0f}", ""],
        ["bytes a watcher, the page at first", f"{at_first:,.0f}", ""],
        ["bytes a watcher and second, then", f"{then:,.0f}", ""],
        ["the server's CPU, of one core", f"{100 * seen.cpu_seconds / seconds:.0f} %", ""],
        ["CPU a request, ms", f"{1000 * seen.cpu_seconds / n:.2f}", ""],
        ["the clients' CPU, of one core", f"{100 * seen.total('cpu_seconds') / seconds:.0f} %", ""],
        ["memory that the server grew by, MB", f"{grown:.0f}", goal_cell(MEMORY, grown)],
    ]  # fmt: skip
    return Table(
        f"What {WATCHERS:,} watchers cost",
        ["", "measured", "target"],
        rows,
        ["The server's CPU holds what it does beside: the publishing itself, and the queue."],
        {MEMORY: Figure(grown)},
    )
