"""The app in browsers: its first screens, a real run, and three browsers that watch it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks import chromium, first_screens
from benchmarks.report import Skipped, Table
from benchmarks.served import Served, per_step, serve
from benchmarks.stress.sessions import slowdown
from benchmarks.timing import median_rows
from benchmarks.visitor import visitor
from pages.ui.navigation import page_table
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PRESET = "vit-digits"
WATCHERS = 3
PAGES = ("", "train", "runs", "attention", "build", "parameters", "masks", "positions", "walk")
# plotly unpacks typed arrays into _fullData; the lines of the first batches are called "training"
_HAS_POINTS = """() => [...document.querySelectorAll('.live-figure')].some(
    figure => (figure._fullData ?? []).some(line => /^training/.test(line.name)
        && line.y.length))"""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Measure the first screens, then answers and slowdown while a long run trains."""
    if chromium.is_lacking():
        yield Skipped("The app", chromium.LACKING)
        return

    rounds = 2 if quick else 6
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium.opened() as browser,
        serve(Path(folder)) as served,
    ):
        log = Path(folder) / "server.log"
        yield from first_screens.tables(served, browser, log=log, quick=quick)
        yield _answers(served, browser, 3 * rounds)
        yield _slowdown(served, browser, rounds, seconds=5 if quick else 15)


def _answers(served: Served, browser: Browser, rounds: int) -> Table:
    run = _start_long_run(served, browser)
    taken: dict[str, list[float]] = {path: [] for path in PAGES}
    with visitor(served.url) as asks:
        for _ in range(rounds + 1):  # the first round imports what a page needs, and is left out
            for path, seconds in taken.items():
                query = f"run={run.id}" if page_table.at(path).shows_run else ""
                seconds.append(asks.visit(path, query))
                time.sleep(0.2)  # a person does not press at once again
    served.end_runs()
    rows, reached = median_rows(
        (path or "home", f"page: {path or 'home'}", [1000 * value for value in seconds[1:]])
        for path, seconds in taken.items()
    )
    return Table(
        "How long the server takes to draw a page while a run trains",
        ["page", "ms from the request to the end of the script", "target"],
        rows,
        [f"{rounds} visits of each in turn, by a client that draws nothing."],
        reached,
    )


def _slowdown(served: Served, browser: Browser, rounds: int, *, seconds: float) -> Table:
    run = _start_long_run(served, browser)
    worker = psutil.Process(run.status.pid)
    pages = [browser.new_context().new_page() for _ in range(WATCHERS)]
    taken: dict[str, list[tuple[float, float]]] = {"alone": [], "watched": []}
    for number in range(2 * rounds):
        for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
            _watch(pages, f"{served.url}/train?run={run.id}" if kind == "watched" else None)
            # not sleep: the browser's messages must be taken
            wait = partial(pages[0].wait_for_timeout, 1000 * seconds)
            taken[kind].append(per_step(run, worker, wait))
    for page in pages:
        page.context.close()
    return slowdown(
        "watchers' slowdown", f"{WATCHERS} browsers", taken, pairs=2 * rounds, seconds=seconds
    )


def _start_long_run(served: Served, browser: Browser) -> Run:
    """Start a preset with far more steps than will be trained, as the app's own form does."""
    from urllib.parse import urlencode

    from tfm_core.config.codec import to_query

    experiment = PRESETS[PRESET].experiment
    longer = experiment.training.model_dump() | {"steps": 100_000}
    query = urlencode(to_query(experiment.replace(training=longer)))
    served.await_warm_worker()
    known = {run.id for run in served.store.list()}
    page = _open(browser, f"{served.url}/train?{query}")
    page.locator(".st-key-start button").first.click()
    page.wait_for_function(_HAS_POINTS)
    page.context.close()
    return next(run for run in served.store.list() if run.id not in known)


def _open(browser: Browser, url: str) -> Page:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(60_000)
    page.goto(url)
    page.locator("[data-test-script-state=notRunning]").first.wait_for()
    return page


def _watch(pages: Sequence[Page], url: str | None) -> None:
    for page in pages:
        page.goto(url or "about:blank")
    if url is not None:
        for page in pages:
            page.wait_for_function(_HAS_POINTS)
    pages[0].wait_for_timeout(1000)
