"""How long people wait for pages, in Chromium: cold start, first point, page change.

The browser takes the time by its own clock, which is the machine's, as the server's is.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import chromium
from benchmarks.goals import goal_cell
from benchmarks.in_sight import ANY_SUBJECT, SUBJECT, SUBJECTS
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import Served, serve, wait_until
from benchmarks.timing import TimeRange
from pages.app.navigation.page_table import MENU, PAGES, PLACES, PageFacts
from tfm_core.runs.disk.atomic import read_json

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PRESET = "vit-digits"
# `began` is the last press; `noted` holds when each of `wanted` was true at first, in milliseconds
# since the page was asked for. Components stand in shadow roots, into which `deep` looks.
_WATCH = """(() => {
    const noted = {};
    const note = (name) => { noted[name] ??= performance.now(); };
    const roots = new Set([document]);
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (...given) {
        const root = attach.apply(this, given);
        roots.add(root);
        return root;
    };
    const deep = (selector) => [...roots].filter((root) => root.isConnected)
        .flatMap((root) => [...root.querySelectorAll(selector)]);
    Object.assign(window, { noted, deep, began: 0 });
    for (const kind of ['pointerdown', 'keydown']) {
        addEventListener(kind, () => { window.began = performance.now(); }, true);
    }
    const Native = WebSocket;
    window.WebSocket = class extends Native {
        constructor(...given) {
            super(...given);
            note('connection asked for');
            this.addEventListener('open', () => note('connection open'));
            this.addEventListener('message', () => note('first message'));
        }
    };
    const wanted = {
        'title': () => document.querySelector('[data-testid=stMain] h1'),
        'script ended': () => noted.title
            && document.querySelector('[data-test-script-state=notRunning]'),
        'usable': () => noted['script ended']
            && deep('.stage input[type=range]').some((slider) => !slider.disabled),
    };
    const look = () => {
        for (const [name, is] of Object.entries(wanted)) if (!noted[name] && is()) note(name);
        if (!noted.usable) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})()"""
_SCRIPTS = """() => performance.getEntriesByType('resource')
    .filter(({ name }) => /\\.js(\\?|$)/.test(name))
    .map(({ name, transferSize, decodedBodySize, responseEnd }) =>
        [name.split('/').at(-1), transferSize, decodedBodySize, responseEnd])"""
_STAGED = """() => deep('.stage .figures .figure').some((figure) =>
    figure.textContent.startsWith('training') && /[0-9]/.test(figure.textContent))
    && performance.now() - began"""
# plotly unpacks typed arrays into _fullData; the lines of the first batches are called "training"
_FIGURED = """() => [...document.querySelectorAll('.live-figure')].some((figure) =>
    (figure._fullData ?? []).some((line) => /^training/.test(line.name) && line.y.length))
    && performance.now() - began"""
_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Measure each of the three waits, and what is spent where."""
    if chromium.is_lacking():
        yield Skipped("The speed of pages", chromium.LACKING)
        return

    rounds = 2 if quick else 5
    with chromium.opened() as browser:
        yield _cold(browser, rounds)
        with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as served:
            yield _first_points(browser, served, rounds)
            yield _restarts(browser, served, rounds)
            yield _page_changes(browser, served, rounds)


def _cold(browser: Browser, rounds: int) -> Table:
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, _opened(browser) as page:
            wait_until(chromium.rests, "a browser at rest")
            begin = time.time()
            with serve(Path(folder)) as served:
                answers = time.time()
                page.goto(served.url)
                page.wait_for_function("() => noted.usable")
                asked = page.evaluate("() => performance.timeOrigin") / 1000 - begin
                noted = {name: asked + at / 1000 for name, at in _moments(page).items()}
                times = {"the server answers": answers - begin, "the page is asked for": asked}
                for name, seconds in (times | noted).items():
                    found.setdefault(name, []).append(seconds)
    rows, before = [], 0.0
    for name, taken in found.items():
        spread = TimeRange.of(taken)
        target = goal_cell("cold start", spread.median) if name == "usable" else ""
        rows.append([name, spread.show(), f"{spread.median - before:+.2f}", target])
        before = spread.median
    return Table(
        "From the start of the server's process to a Home that can be used",
        ["", "seconds since the start", "of which here", "target"],
        rows,
        [
            f"{rounds} starts, each seen by a browser that knows nothing of the app, in a window",
            "that was open before: Chromium loads internal pages into a new one, for a second.",
            "It can be used when its script has ended and the scrubber of its stage can be moved.",
        ],
        {"cold start": Figure(before)},
    )


def _moments(page: Page) -> dict[str, float]:
    """Return when each part of a page was there, in order, in ms since the request."""
    moments: dict[str, float] = page.evaluate("() => noted")
    html = page.evaluate("() => performance.getEntriesByType('navigation')[0].responseEnd")
    scripts = [end for *_, end in page.evaluate(_SCRIPTS) if end < moments["connection asked for"]]
    found = {
        "its HTML is there": html,
        "Streamlit's scripts are there": max(scripts),
        "first paint": page.evaluate(_PAINTED),
        **moments,
    }
    return dict(sorted(found.items(), key=lambda item: item[1]))


@dataclass
class _Watcher:
    """Looks at a folder of runs for what the next new run does, and when (``time.time``)."""

    root: Path
    seen: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def watching(self) -> Iterator[dict[str, float]]:
        known, ends = set(self._runs()), threading.Event()
        self.seen = {}

        def watch() -> None:
            while not ends.wait(0.005):
                for name in set(self._runs()) - known:
                    self._look(self.root / name)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield self.seen
        finally:
            ends.set()
            thread.join()

    def _runs(self) -> Sequence[str]:
        return [path.name for path in self.root.glob("[!.]*") if path.is_dir()]

    def _look(self, folder: Path) -> None:
        now = time.time()
        self.seen.setdefault("the run is made", now)
        state = str((read_json(folder / "status.json") or {}).get("state"))
        if state in ("starting", "running"):
            words = {"starting": "a worker has it", "running": "data and model are made"}
            self.seen.setdefault(words[state], now)
        if "the first step is written down" not in self.seen:
            events = folder / "events.jsonl"
            if events.is_file() and '"event": "step"' in events.read_text(encoding="utf-8"):
                self.seen["the first step is written down"] = now


def _first_points(browser: Browser, served: Served, rounds: int) -> Table:
    found: dict[str, list[float]] = {}
    for _ in range(rounds + 1):  # the first round imports what the page needs, and is left out
        served.await_warm_worker()
        with _opened(browser) as page, _Watcher(served.store.root).watching() as seen:
            page.goto(f"{served.url}/train?preset={PRESET}")
            page.wait_for_function("() => noted['script ended']")
            page.get_by_role("button", name="Start", exact=True).click()
            page.wait_for_function("() => deep('.st-key-live-head').length")
            drawn = page.evaluate("() => performance.now() - began") / 1000
            staged = page.wait_for_function(_STAGED).json_value() / 1000
            figured = page.wait_for_function(_FIGURED).json_value() / 1000
            click = page.evaluate("() => performance.timeOrigin + began") / 1000
            times = {name: at - click for name, at in seen.items()}
        served.end_runs()
        times |= {
            "its page is drawn": drawn,
            "the stage shows a point": staged,
            "the figure below shows a point": figured,
        }
        for name, seconds in times.items():
            found.setdefault(name, []).append(seconds)
    rows = []
    for name, taken in found.items():
        spread = TimeRange.of(taken[1:])
        is_goal = name == "the stage shows a point"
        target = goal_cell("point on stage", spread.median) if is_goal else ""
        rows.append([name, spread.show(), target])
    return Table(
        f"From Start to the first point of the curve ({PRESET}, with a warm worker)",
        ["", "seconds since the press", "target"],
        rows,
        [f"{rounds} runs, each begun on Train in a new session."],
        {"point on stage": Figure(TimeRange.of(found["the stage shows a point"][1:]).median)},
    )


_RESTARTED = """(before) => {
    const found = deep('.stage')[0]?.stage?.data;
    return found && location.search !== before.search && found.now > 0 && found.now < before.now
        && performance.now() - began;
}"""


def _restarts(browser: Browser, served: Served, rounds: int) -> Table:
    taken: list[float] = []
    with _opened(browser) as page:
        page.goto(f"{served.url}/train?preset={PRESET}")
        page.get_by_role("button", name="Start", exact=True).click()
        for n in range(rounds):
            page.wait_for_function(_STAGED)
            page.wait_for_timeout(4000)  # time to look before the next change
            before = page.evaluate(
                "() => ({ search: location.search, now: deep('.stage')[0].stage.data.now })"
            )
            page.get_by_role("slider", name="d_ff").press("ArrowLeft" if n % 2 else "ArrowRight")
            taken.append(page.wait_for_function(_RESTARTED, arg=before).json_value() / 1000)
    served.end_runs()
    spread = TimeRange.of(taken)
    return Table(
        f"From a touched slider to the first point of the new run ({PRESET}, d_ff)",
        ["", "seconds since the key", "target"],
        [["the stage shows a point", spread.show(), goal_cell("restart", spread.median)]],
        [f"{rounds} changes, 4 s after the last one's first point."],
        {"restart": Figure(spread.median)},
    )


_CHANGED = f"""([before, selector]) => {{
    const title = document.querySelector('[data-testid=stMain] h1');
    return title && title.textContent !== before
        && document.querySelector('[data-test-script-state=notRunning]')
        && ({SUBJECT})(selector) !== 'absent' && performance.now() - began;
}}"""


def _page_changes(browser: Browser, served: Served, rounds: int) -> Table:
    """Go round the pages of the bar and their tabs, those of the menu apart."""
    names = [name for place, (_, of_place) in PLACES.items() if place != MENU for name in of_place]
    found: dict[str, list[float]] = {name: [] for name in names}
    with _opened(browser) as page:
        page.goto(served.url)
        page.wait_for_function("() => noted.usable")
        for _ in range(rounds + 1):  # the first round imports what a page needs
            for name in [*names[1:], names[0]]:
                found[name].append(_changed(page, PAGES[name]))
    first = max(taken[0] for taken in found.values())
    later = {name: TimeRange.of(taken[1:]) for name, taken in found.items()}
    half = statistics.median(spread.median for spread in later.values())
    by_time = sorted(later, key=lambda name: -later[name].median)
    return Table(
        "A change of page, until its subject is drawn and its script has ended",
        ["to", "ms, the first time", "ms, later"],
        [[name, f"{found[name][0]:.0f}", later[name].show(digits=0)] for name in by_time],
        [
            f"{rounds} rounds through all of them in one session, after the first. Slowest at",
            f"first: {first:.0f} ms, {goal_cell('first visit', first / 1000)}. Half of the pages",
            f"later: within {half:.0f} ms, {goal_cell('change of page', half)}.",
        ],
        {"first visit": Figure(first / 1000), "change of page": Figure(half)},
    )


def _changed(page: Page, facts: PageFacts) -> float:
    """Go to a page; return the milliseconds until its subject is drawn."""
    title, pages = PLACES[facts.place]
    before = page.locator("[data-testid=stMain] h1").first.inner_text()
    tab = page.locator(f".st-key-page-title a[href='{facts.name}']")
    is_tab = facts.name != pages[0] or (len(pages) > 1 and tab.count())
    link = tab if is_tab else page.get_by_test_id("stTopNav").get_by_role("link", name=title)
    link.first.click()
    subject = SUBJECTS.get(facts.name, ANY_SUBJECT)
    taken = float(page.wait_for_function(_CHANGED, arg=[before, subject]).json_value())
    page.wait_for_timeout(700)
    return taken


@contextmanager
def _opened(browser: Browser) -> Iterator[Page]:
    """Open a page in a session that is new to the app."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.set_default_timeout(60_000)
    try:
        yield page
    finally:
        context.close()
