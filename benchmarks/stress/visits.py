"""Very many fresh sessions over all pages: nothing of them stays in the server.

Each opens a page of its own, with or without a run, waits until it is drawn, and goes. The first
round opens every page with every recorded run, so that whatever is kept on purpose is there; what
grows after it, grows with the visits.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table, Target
from benchmarks.served import serve, wait_until
from benchmarks.visitor import visitor
from pages.ui.navigation import page_table
from tfm_core.runs.queue import tickets
from tfm_core.runs.store import RunStore

SEED = 400
FORGOTTEN_SECONDS = 5
"""After how long the server forgets a session that went; 2 minutes where nobody says otherwise."""

GROWTH, TRACEBACKS = "visits: memory", "visits: tracebacks"
"""Goals."""

Address = tuple[str, str]  # path and query of a page


@dataclass(frozen=True, slots=True)
class Held:
    """What a server holds. memory: bytes, resident; the rest are counts."""

    memory: int
    threads: int
    files: int
    zombies: int
    tickets: int
    temporary: int

    @classmethod
    def of(cls, process: psutil.Process, runs: Path, temporary: Path) -> Held:
        """Look at a server, its folder of runs and the one for what it writes for a while."""
        return cls(
            memory=process.memory_info().rss,
            threads=process.num_threads(),
            files=process.num_fds(),
            zombies=sum(_is_zombie(child) for child in process.children(recursive=True)),
            tickets=len(tickets.waiting(runs)),
            temporary=len(os.listdir(temporary)),
        )

    def left_since(self, before: Held) -> dict[str, int]:
        """Return what there is more of than before, memory apart."""
        names = [field.name for field in fields(self) if field.name != "memory"]
        more = {name: getattr(self, name) - getattr(before, name) for name in names}
        return {name: n for name, n in more.items() if n > 0}


def addresses() -> list[Address]:
    """Return every page without a run, and those that show one with each recorded one, too."""
    runs = [run.id for run in RunStore().list() if run.meta.recorded]
    pages = list(page_table.PAGES.values())
    return [(page.url_path, "") for page in pages] + [
        (page.url_path, f"run={run}") for page in pages if page.shows_run for run in runs
    ]


def visit_all(url: str, where: Sequence[Address]) -> None:
    """Open each in a new session, one after the other. Raises if one is not drawn."""
    for path, query in where:
        with visitor(url) as session:
            session.visit(path, query)


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Open everything once, then again and again by chance; compare what the server holds."""
    if not hasattr(psutil.Process, "num_fds"):
        yield Skipped("Visits", "this system does not say how many files a process has open.")
        return
    known = addresses()[: 40 if quick else None]
    n_visits = 60 if quick else 400
    chosen = random.Random(SEED).choices(known, k=n_visits)
    forgets = {"STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": str(FORGOTTEN_SECONDS)}
    with tempfile.TemporaryDirectory() as name, serve(Path(name), forgets) as served:
        folder = Path(name)
        served.await_warm_worker()
        visit_all(served.url, known)

        def held() -> Held:
            time.sleep(FORGOTTEN_SECONDS + 1)
            visit_all(served.url, known[:1])  # sessions are forgotten when the next one goes
            return Held.of(served.process, served.store.root, folder / "tmp")

        before = held()
        visit_all(served.url, chosen)
        with contextlib.suppress(TimeoutError):  # threads and sockets end a moment later
            wait_until(lambda: not held().left_since(before), "what the visits left")
        after = held()
        n_failed = (folder / "server.log").read_text(errors="replace").count("Traceback")
    yield _table(before, after, n_warm=len(known), n_visits=n_visits,
                 n_failed=n_failed)  # fmt: skip


def _table(before: Held, after: Held, *, n_warm: int, n_visits: int, n_failed: int) -> Table:
    grown = (after.memory - before.memory) / 2**20
    rows = [["memory, MiB", f"{before.memory / 2**20:.0f}", f"{after.memory / 2**20:.0f}",
             f"{grown:+.0f}", goal_cell(GROWTH, grown)]]  # fmt: skip
    none = Target(0, at_least=False)
    for field in fields(Held):
        if field.name != "memory":
            first, last = getattr(before, field.name), getattr(after, field.name)
            verdict = f"{none}, {none.verdict(last - first)}"
            rows.append([field.name, str(first), str(last), f"{last - first:+d}", verdict])
    rows.append(["tracebacks in the log", "", str(n_failed), "", goal_cell(TRACEBACKS, n_failed)])
    return Table(
        f"What {n_visits} fresh sessions leave in the server",
        ["", "before", "after", "grown by", "target"],
        rows,
        [
            f"Before: a warm worker and {n_warm} sessions, each page once; seed {SEED}.",
            f"The server forgets sessions that went after {FORGOTTEN_SECONDS} s, not 2 minutes.",
        ],
        {GROWTH: Figure(grown), TRACEBACKS: Figure(n_failed)},
    )


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
