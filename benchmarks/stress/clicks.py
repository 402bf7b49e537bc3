"""Random clicks in a real browser: whatever is pressed, typed or pulled, no page breaks.

A restless visitor picks among everything that can be pressed on the page and in the bar of pages,
types into fields what nobody expects there, moves sliders, goes back and forward, and reloads. What
it does follows from a seed; how far a page has come when it does it does not, so that a fault may
need more than one try to be seen again.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import chromium
from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import serve
from benchmarks.stress.visits import addresses
from tfm_core.presets import PRESETS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle

    from tests.browser.tab import Tab

SEED = 10
REMEMBERED = 20
TRAINED = ("copy", "vit-digits", "gpt-text")
"""Presets of which the server has a short run; one of them is damaged."""

GOAL = "clicks: faults"
TRY_MILLISECONDS = 2_000
REST_MILLISECONDS = 180_000

WORDS = (
    *("", "0", "1", "-1", "3", "1e9", "0.5", "999999999999999999", "abc", "한국어 문장"),
    *("<script>alert(1)</script>", "**bold** $x_1$ `code`", "../../etc/passwd", "{name} %s"),
    *("the small dog sees a red house", "12+34=", "word " * 60, "\N{GRINNING FACE}\u0301\u200f"),
)
KEYS = ("ArrowLeft", "ArrowRight", "ArrowRight", "PageUp", "PageDown", "Home", "End")

_PLACES = (
    ":is([data-testid=stMain], [data-testid=stTopNav], [data-testid=stTopNavPopover], "
    "[role=dialog], [data-testid=stPopoverBody])"
)
_PRESSED = (
    "button", "a[href]", "summary", "label", "canvas", "[role=tab]", "[role=radio]", "g.node",
    ".nsewdrag", "td",
)  # fmt: skip
PRESSED = ", ".join(f"{_PLACES} {one}" for one in _PRESSED)
FIELDS = f"{_PLACES} :is(input[type=text], input[type=number], textarea):not([role=combobox])"
LISTS = f"{_PLACES} [role=combobox]"
NAVIGATION = ":is([data-testid=stTopNav], [data-testid=stTopNavPopover]) a[href]"
SLIDERS = f"{_PLACES} [role=slider]"
OPTIONS = "[role=option]"

_PICK = """([selector, share]) => {
    const all = [...document.querySelectorAll(selector)].filter(one => {
        const box = one.getBoundingClientRect();
        const link = one.closest('a[href]');
        return box.width > 0 && box.height > 0 && !one.disabled
            && one.getAttribute('aria-disabled') !== 'true'
            && getComputedStyle(one).visibility !== 'hidden'
            && !one.closest('[data-testid=stFileUploader]')
            && (link === null || (link.origin === location.origin && link.target !== '_blank'
                && !link.hasAttribute('download')));
    });
    const first = Math.floor(share * all.length);
    return [...all.slice(first), ...all.slice(0, first)].slice(0, 20).find(one => {
        one.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
        const box = one.getBoundingClientRect();
        const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return hit !== null && (one.contains(hit) || hit.closest('label')?.contains(one));
    }) ?? null;
}"""
"""The element at a share of those that are there to be pressed and that nothing covers."""
_LABEL = """one => (one.getAttribute('aria-label') || one.textContent || one.tagName)
    .trim().replace(/\\s+/g, ' ').slice(0, 60)"""
_AT_REST = """() => document.querySelector('[data-testid=stApp]')
    ?.dataset.testScriptState === 'notRunning'"""


@dataclass
class Restless:
    """A visitor who acts at random; ``done`` are the last actions in words."""

    tab: Tab
    seed: int
    done: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with the seed; dialogs and further windows are closed."""
        self._random = random.Random(self.seed)
        self._addresses = addresses()
        self.tab.page.on("dialog", lambda dialog: dialog.dismiss())
        self._ways: tuple[tuple[int, str, Callable[[], str | None]], ...] = (
            (55, "press", self._press),
            (8, "go to", self._go),
            (12, "type", self._type),
            (10, "slide", self._slide),
            (8, "choose", self._choose),
            (4, "back", self._back),
            (3, "forward", self._forward),
            (3, "reload", self._reload),
        )

    def act(self) -> None:
        """Act once and wait until the page is drawn. Raises TimeoutError."""
        from playwright.sync_api import Error

        weights = [weight for weight, _, _ in self._ways]
        what = None
        while what is None:  # there may be no list or field on this page
            _, kind, way = self._random.choices(self._ways, weights)[0]
            try:
                what = way()
            except Error as error:  # it went away or is covered: a person would press nothing, too
                what = f"in vain: {str(error).splitlines()[0]}"
                kind = f"{kind} in vain"
        self.counts[kind] += 1
        self.done.append(f"{kind} {what} at {self.tab.page.url}")
        self.tab.page.wait_for_function(_AT_REST, timeout=REST_MILLISECONDS)

    def _pick(self, selector: str) -> tuple[ElementHandle, str] | None:
        handle = self.tab.page.evaluate_handle(_PICK, [selector, self._random.random()])
        element = handle.as_element()
        return None if element is None else (element, repr(element.evaluate(_LABEL)))

    def _press(self) -> str | None:
        if (found := self._pick(PRESSED)) is None:
            return None
        element, label = found
        box = element.bounding_box() or {"width": 2, "height": 2}
        place = {
            "x": self._random.random() * box["width"],
            "y": self._random.random() * box["height"],
        }
        is_drawn = element.evaluate("one => /^(canvas|rect)$/i.test(one.tagName)")
        options: dict[str, Any] = {"position": place} if is_drawn else {}
        element.click(timeout=TRY_MILLISECONDS, **options)
        return label

    def _type(self) -> str | None:
        if (found := self._pick(FIELDS)) is None:
            return None
        element, label = found
        words = self._random.choice(WORDS)
        element.click(timeout=TRY_MILLISECONDS)
        self.tab.page.keyboard.press("Control+a")
        self.tab.page.keyboard.insert_text(words)
        self.tab.page.keyboard.press(self._random.choice(("Enter", "Control+Enter", "Tab")))
        return f"{words[:40]!r} into {label}"

    def _slide(self) -> str | None:
        if (found := self._pick(SLIDERS)) is None:
            return None
        element, label = found
        key, times = self._random.choice(KEYS), self._random.randint(1, 4)
        element.focus()
        for _ in range(times):
            self.tab.page.keyboard.press(key)
        return f"{key} x {times} on {label}"

    def _choose(self) -> str | None:
        if (found := self._pick(LISTS)) is None:
            return None
        element, label = found
        element.click(timeout=TRY_MILLISECONDS)
        if (option := self._pick(OPTIONS)) is None:
            self.tab.page.keyboard.press("Escape")
            return f"nothing of {label}"
        option[0].click(timeout=TRY_MILLISECONDS)
        return f"{option[1]} of {label}"

    def _go(self) -> str:
        """Follow the navigation, or else a link from elsewhere, to a page with a run or without."""
        if self._random.random() < 0.5 and (found := self._pick(NAVIGATION)) is not None:
            found[0].click(timeout=TRY_MILLISECONDS)
            return found[1]
        path, query = self._random.choice(self._addresses)
        self.tab.page.goto(f"{self.tab.url}/{path}?{query}")
        return f"{path}?{query}"

    def _back(self) -> str:
        self.tab.page.go_back()
        return self._home_if_away()

    def _forward(self) -> str:
        self.tab.page.go_forward()
        return self._home_if_away()

    def _reload(self) -> str:
        self.tab.page.reload()
        return ""

    def _home_if_away(self) -> str:
        """Return to the app if the history led out of it."""
        if not self.tab.page.url.startswith(self.tab.url):
            self.tab.goto("")
            return "and home, from an empty page"
        return ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that must not be: what was seen, and what was done last."""

    words: str
    done: tuple[str, ...]

    def __str__(self) -> str:
        """Return it with the last actions, the latest below."""
        return "\n".join([self.words, *(f"    {one}" for one in self.done)])


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Press for a while; count what was done and what broke."""
    if chromium.is_lacking():
        yield Skipped("Clicks", chromium.LACKING)
        return
    from tests.browser.tab import Tab

    seconds = 30 if quick else 600
    short = {"TFM_MAX_SECONDS": "20", "TFM_MAX_QUEUED": "5"}
    with (
        tempfile.TemporaryDirectory() as name,
        chromium.opened("--disable-gpu") as browser,
        serve(Path(name), short) as served,
    ):
        _fill(served.store)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.set_default_timeout(REST_MILLISECONDS)
        tab = Tab(page, served.url)
        visitor = Restless(tab, SEED)
        faults = list(_press_for(seconds, visitor, Path(name) / "server.log"))
    yield _table(seconds, visitor, faults)


def _press_for(seconds: float, visitor: Restless, log: Path) -> Iterator[Fault]:
    """Yield what breaks; after each fault the visitor restarts at Home."""
    from playwright.sync_api import TimeoutError as TimedOut

    tab, n_read = visitor.tab, 0
    end = time.monotonic() + seconds
    tab.page.goto(tab.url)
    tab.page.wait_for_function(_AT_REST)
    while time.monotonic() < end:
        try:
            visitor.act()
            seen = tab.went_wrong()
        except TimedOut:
            seen = [f"the page is not drawn after {REST_MILLISECONDS / 1000:.0f} s"]
        said = log.read_text(errors="replace")
        seen += [f"in the log: {said[n_read:][-2000:]}"] if "Traceback" in said[n_read:] else []
        n_read = len(said)
        if seen:
            yield from (Fault(words, tuple(visitor.done)) for words in seen)
            tab.problems.clear()
            tab.page.goto(tab.url)
            tab.page.wait_for_function(_AT_REST)


def _fill(store: RunStore) -> None:
    """Train a little of each preset, and damage the last run."""
    for name in TRAINED:
        experiment = PRESETS[name].experiment
        short = experiment.training.replace(steps=12)
        run = store.create(experiment.replace(training=short.model_dump()), preset=name)
        execute(run)
    (run.folder / "experiment.json").write_text("{")


def _table(seconds: float, visitor: Restless, faults: list[Fault]) -> Table:
    kinds = {
        "on the page": "error boxes",
        "the page is not drawn": "pages that were not drawn",
        "in the log": "tracebacks in the log",
        "in the console": "errors in the console",
        "error in a script": "errors of scripts",
    }
    rows = [[kind, str(n), ""] for kind, n in visitor.counts.most_common()]
    for begin, words in kinds.items():
        n = sum(fault.words.startswith(begin) for fault in faults)
        rows.append([words, str(n), goal_cell(GOAL, n)])
    notes = [f"{sum(visitor.counts.values()):,} actions with seed {visitor.seed}."]
    if faults:
        notes.append("\n\n" + "\n\n".join(f"```\n{fault}\n```" for fault in faults[:5]))
    return Table(
        f"{seconds:g} seconds of random clicks",
        ["", "times", "target"],
        rows,
        notes,
        {GOAL: Figure(len(faults))},
    )
