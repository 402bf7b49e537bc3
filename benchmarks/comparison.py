"""A comparison of 50 runs of 1,000 points: how soon it is drawn, and how soon it answers.

The runs are made up; what is timed is what a visitor waits for: from the request of the page to
the last line painted in Chromium, and from a press to the next painted figure.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import chromium
from benchmarks.report import Skipped, Table
from benchmarks.served import Served, serve
from benchmarks.timing import TimeRange, median_rows
from benchmarks.visitor import visitor
from tfm_core.config import Experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

N_RUNS, N_POINTS, N_MEASURED = 50, 1000, 20
TITLE = f"{N_RUNS} runs of {N_POINTS:,} points compared"
_DRAWN = """() => [...document.querySelectorAll('.live-figure')].some(
    figure => Number(figure.dataset.lines) >= %d && figure.dataset.along === '%s')"""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Measure the server alone, then the page from its request until it is painted."""
    rounds = 3 if quick else 9
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as served:
        ids = make_runs(served.store)
        yield _scripts(served, ids, rounds)
        if chromium.is_lacking():
            yield Skipped(TITLE, chromium.LACKING)
            return
        with chromium.opened() as browser:
            yield _painted(served, browser, ids, rounds)


def make_runs(store: RunStore) -> list[str]:
    """Write runs of as many configurations, each with noisy curves; return their ids."""
    base, ids = PRESETS["reverse"].experiment, []
    for number in range(N_RUNS):
        values = base.model_dump() | {"seed": 0}
        values["training"] |= {"steps": N_POINTS, "learning_rate": 0.001 * (number + 1)}
        run = store.create(Experiment.parse(values), name=f"Run {number}")
        noise = np.random.default_rng(number).normal(1, 0.1, N_POINTS + 1)
        lines = "".join(json.dumps(one) + "\n" for one in _events(noise, 3 + number / 10))
        (run.folder / "events.jsonl").write_text(lines, encoding="utf-8")
        status = dataclasses.replace(run.status, state="finished", step=N_POINTS, seconds=30.0)
        write_status(run.folder, status, lasting=False)
        ids.append(run.id)
    return ids


def _events(noise: np.ndarray, speed: float) -> Iterator[dict[str, object]]:
    yield {"event": "started", "step": 0, "total_steps": N_POINTS, "steps_per_epoch": 31}
    for step in range(1, N_POINTS + 1):
        left = math.exp(-speed * step / N_POINTS)
        yield {"event": "step", "step": step, "loss": 2.3 * left * float(noise[step]),
               "accuracy": 1 - left, "learning_rate": 0.004, "grad_norm": 0.7,
               "examples_per_second": 2100.0, "seconds": 0.03 * step}  # fmt: skip
        if step % (N_POINTS // N_MEASURED) == 0:
            yield {"event": "measured", "step": step, "split": "validation", "loss": 2.3 * left,
                   "accuracy": 1 - left}  # fmt: skip


def _scripts(served: Served, ids: Sequence[str], rounds: int) -> Table:
    taken, spent = [], []
    with visitor(served.url) as asks:
        for _ in range(rounds + 1):  # the first one imports the page and reads the curves
            before = _cpu(served)
            taken.append(1000 * asks.visit("compare", f"runs={','.join(ids)}"))
            spent.append(1000 * (_cpu(served) - before))
    rows = [["first visit", f"{taken[0]:.0f}", f"{spent[0]:.0f}"]]
    later = [TimeRange.of(values[1:]).show(digits=0) for values in (taken, spent)]
    return Table(
        f"{TITLE}: the server's part",
        ["", "ms from the request to the end of the script", "CPU-ms of the server"],
        [*rows, ["later ones", *later]],
        [f"{rounds} later visits, by a client that draws nothing."],
    )


def _cpu(served: Served) -> float:
    times = served.process.cpu_times()
    return float(times.user + times.system)


def _painted(served: Served, browser: Browser, ids: Sequence[str], rounds: int) -> Table:
    opened, answered, led = [], [], []
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{served.url}/masks")  # whoever opens a comparison has the app's scripts already
    _rest(page)
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        page.goto(f"{served.url}/compare?runs={','.join(ids)}")
        page.wait_for_function(_DRAWN % (N_RUNS, "step"))
        opened.append(1000 * (time.perf_counter() - begin))
        _rest(page)
        begin = time.perf_counter()
        page.locator(".st-key-compare-log-x label").first.click()
        page.wait_for_function(_DRAWN % (N_RUNS, "step (log)"))
        answered.append(1000 * (time.perf_counter() - begin))
        led.append(1000 * _led_back(page))
    page.context.close()
    rows, reached = median_rows(
        (
            ("from the address to the curves", "comparison: from an address", opened[1:]),
            ("from a press in the bar to the curves", "comparison: from the bar", led[1:]),
            ("from a press to the other axis", "comparison: another axis", answered[1:]),
        )
    )
    return Table(
        f"{TITLE}: in Chromium, painted",
        ["", "ms", "target"],
        rows,
        [f"{rounds} rounds, the app's scripts in the browser's cache."],
        reached,
    )


def _led_back(page: Page) -> float:
    """Return the seconds from a press in the bar to the curves, after a look at another page."""
    for section, name in (("Watch", "Runs"), ("Play", "Compare")):
        _rest(page)
        page.get_by_test_id("stTopNav").get_by_role("button", name=section).click()
        link = page.get_by_role("menuitem", name=name)
        link.wait_for()
        begin = time.perf_counter()
        link.click()
    page.wait_for_function(_DRAWN % (N_RUNS, "step (log)"))
    return time.perf_counter() - begin


def _rest(page: Page) -> None:
    page.locator("[data-test-script-state=notRunning]").first.wait_for()
    page.wait_for_timeout(1000)
