"""Every page is drawn whole, nothing sticks out or fails, and all of it can be used by all.

Each address is opened once, on a phone, in a language that nobody speaks: its texts are three
tenths longer. ``TFM_NIGHTLY=1`` adds the other theme, a projector and Korean.
"""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as TimedOut
from playwright.sync_api import ViewportSize, expect

from pages.app.navigation import page_table
from tests import fresh
from tests.browser.axe import expect_no_violations
from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab
from tests.browser.untranslated import LISTEN, untranslated
from tests.nightly import IS_NIGHTLY
from tests.pages import pseudo

pytestmark = pytest.mark.browser

PAGES_PER_TEST = 5
MORE = {
    "text": [
        "train",
        "attention?run=recorded-korean&example=own",
        "build?show=transformer-base",
        "parameters?show=gpt2-small&versus=bert-base",
    ],
    "pictures": [
        "train?run=recorded-digits",
        "attention?run=recorded-digits",
        "attention?run=recorded-digits&example=own",
        "walk?run=recorded-digits",
    ],
    "tried": ["try?view=draw", "try?view=read", "try?view=sentiment", "try?view=scene"],
}
PHONE = ViewportSize(width=390, height=844)
PROJECTOR = ViewportSize(width=1280, height=720)
ZOOMED = ViewportSize(width=320, height=256)
"""A window of 1280x1024 at 400% (WCAG 2.2, 1.4.10)."""
IN_SIGHT = """() => [0, innerHeight].map(top => {
    document.querySelector('[data-testid=stMain]').scrollTo(0, top);
    const frame = document.querySelectorAll('[data-testid=stHeader], .st-key-strip');
    return Math.max(...[...frame].map(part => part.getBoundingClientRect().bottom)) / innerHeight;
})"""
"""JavaScript: which share of the height bar and strip cover at the top of the page, and below."""
NAMELESS = re.compile(
    r"^\s*- (?:button|checkbox|combobox|dialog|figure|grid|img|link|meter|option|progressbar|radio"
    r"|radiogroup|searchbox|slider|spinbutton|switch|tab|textbox)(?: \[.*\])?:?$"
)
"""A line of an aria snapshot: a part that a screen reader can say nothing of."""
SHORT_NAMES = """() => {
    const found = [];
    const look = (root) => root.querySelectorAll("*").forEach((node) => {
        const name = node.getAttribute("aria-label") ?? "";
        const isFigure = node.matches("[role=img]:not([aria-hidden=true]), .live-figure");
        const isShort = isFigure && name.trim().split(/\\s+/).length < 2;
        const length = name.replace(/[⟦⟧·]/g, "").replace(/\\s+/g, " ").length;
        if ((isShort || length > 120) && node.getClientRects().length) {
            found.push(node.outerHTML.slice(0, 200));
        }
        if (node.shadowRoot) look(node.shadowRoot);
    });
    look(document.querySelector("[data-testid=stMain]"));
    return found;
}"""
"""Figures named by one word or none, and names too long for one breath, in components too."""
LEVELS = """[...document.querySelectorAll('[data-testid=stMain] :is(h1, h2, h3, h4, h5, h6)')]
    .map(heading => Number(heading.tagName[1]))"""
FITS = """() => [document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')]
    .every(part => part.scrollWidth <= part.clientWidth)"""
THEME = """Math.max(...getComputedStyle(document.querySelector('[data-testid=stApp]'))
    .backgroundColor.match(/\\d+/g).map(Number)) > 128 ? 'light' : 'dark'"""
CUT = (Path(__file__).parent / "cut.js").read_text(encoding="utf-8")
FOCUS = (Path(__file__).parent / "focus.js").read_text(encoding="utf-8")
SHARE_BY_KEYBOARD = 1.0 if IS_NIGHTLY else 0.2
"""Of the pages that are gone through by keyboard: the commit chooses which."""
DRAWN = """() => document.fonts.status === "loaded"
    && [...document.querySelectorAll("[data-testid=stMain] .live-figure")].every((node) =>
        node.querySelector("canvas") || (node.querySelector(".main-svg")
            && Math.abs(node._fullLayout.height - node.clientHeight) < 2))"""
"""JavaScript: every figure is drawn in the size that it has now."""
NOW = """new Promise((done) => requestIdleCallback(() => requestIdleCallback(
    () => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))))"""
"""JavaScript: the time when nothing is left to draw, and all stands on the screen."""
MOVES = """() => {
    const found = document.getAnimations()
        .filter(({ effect, transitionProperty }) => effect.getTiming().duration > 0
            && transitionProperty !== "opacity")
        .map(({ effect }) => `moves: ${effect.target?.outerHTML.slice(0, 100)}`);
    const look = (root) => root.querySelectorAll("*").forEach((node) => {
        if (node.matches(".stage .play") && /Pause/.test(node.title)) found.push("the stage plays");
        if (node.shadowRoot) look(node.shadowRoot);
    });
    look(document);
    return found;
}"""
"""JavaScript: what moves by itself for a reader who asks for calm."""
SMALL = """() => {
    const found = new Set();
    const look = (root) => root.querySelectorAll("*").forEach((node) => {
        const isText = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
        const size = parseFloat(getComputedStyle(node).fontSize);
        const isOurs = !node.closest(".katex"); // formulas hide marks
        if (isText && isOurs && size && size < 11 && node.getClientRects().length) {
            found.add(`${size} px: ${node.outerHTML.slice(0, 100)}`);
        }
        if (node.shadowRoot) look(node.shadowRoot);
    });
    look(document.querySelector("[data-testid=stMain]"));
    return [...found].slice(0, 5);
}"""
"""JavaScript: texts, of figures too, that are smaller than 11 pixels."""
MAX_SHIFT = 0.01
MOVED = """async (settled) => {
    const shifts = [];
    const watch = new PerformanceObserver((list) => shifts.push(...list.getEntries()));
    watch.observe({ type: "layout-shift", buffered: true });
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    shifts.push(...watch.takeRecords());
    watch.disconnect();
    const words = ({ node }) => node?.textContent.slice(0, 40);
    return shifts.filter(({ startTime }) => startTime > settled)
        .map(({ value, sources }) => [value, ...sources.map(words)]);
}"""
"""JavaScript: how much of the page moved since, and what."""


@dataclass(frozen=True)
class Look:
    """How the pages are looked at; themes: those of the pages by turns."""

    size: ViewportSize
    language: str
    themes: tuple[str, str]


BRIGHT_FIRST, DARK_FIRST = ("light", "dark"), ("dark", "light")
LOOKS = {"phone": Look(PHONE, pseudo.LANGUAGE, BRIGHT_FIRST)}
if IS_NIGHTLY:
    LOOKS |= {
        "other-theme": Look(PHONE, pseudo.LANGUAGE, DARK_FIRST),
        "projector": Look(PROJECTOR, pseudo.LANGUAGE, DARK_FIRST),
        "korean": Look(PHONE, "ko", BRIGHT_FIRST),
    }


def address(page: page_table.PageFacts) -> str:
    """Return the path that opens a page, with a run that it can show."""
    if not page.shows_run:
        return page.url_path
    run = "recorded-digits" if page.name == "practice" else "recorded-korean"
    return f"{page.url_path}?run={run}"


def groups() -> dict[str, list[str]]:
    """Return all addresses by place, a few for each test."""
    found = {}
    for name, (_title, pages) in page_table.PLACES.items():
        paths = [address(page_table.PAGES[page]) for page in pages]
        if name == "findings":
            paths += [f"findings?finding={one}" for one in page_table.FINDINGS]
        for first in range(0, len(paths), PAGES_PER_TEST):
            found[f"{name}-{first}" if first else name] = paths[first : first + PAGES_PER_TEST]
    return found | MORE


@pytest.mark.parametrize("paths", groups().values(), ids=groups())
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_every_page_is_drawn_whole_and_can_be_used_by_all(
    open_tab: OpenTab, paths: list[str], look: Look
) -> None:
    tab = None
    faults: dict[str, list[Any]] = {}
    for theme, path in zip(itertools.cycle(look.themes), paths, strict=False):
        spoken = f"{path}{'&' if '?' in path else '?'}lang={look.language}"
        if tab is None:
            tab = open_tab(spoken, viewport=look.size, color_scheme=theme, script=LISTEN)
        else:
            tab.page.set_viewport_size(look.size)
            tab.page.emulate_media(color_scheme=theme)
            tab.goto(spoken)
        await_drawn(tab, look.language)
        drawn = tab.page.evaluate(NOW)
        faults[path] = [
            *without_words(tab, path, look),
            *without_names(tab),
            *moved(tab, drawn),
            *tab.page.evaluate(MOVES),
            *tab.page.evaluate(SMALL),
            *tab.went_wrong(),
        ]
        assert tab.page.evaluate(THEME) == theme, path
        expect_no_violations(tab.page, labels=look.language != pseudo.LANGUAGE)
        if look.size is PHONE:
            tab.page.set_viewport_size(ZOOMED)
            tab.await_js(FITS)
            assert max(tab.page.evaluate(IN_SIGHT)) <= 0.25, path
        faults[path] += by_keyboard(tab, path, look)
    assert {path: found for path, found in faults.items() if found} == {}


def await_drawn(tab: Tab, language: str) -> None:
    """Wait until all that a page shows is drawn, and nothing sticks out."""
    expect(tab.page.locator("html")).to_have_attribute("lang", language)
    expect(tab.title).to_be_visible()
    tab.await_js(DRAWN)
    tab.await_js(FITS)
    tab.await_js(f"() => !({SHORT_NAMES})().length")


def without_words(tab: Tab, path: str, look: Look) -> list[Any]:
    """Return what is in English on a page of another language, and what of it is cut."""
    is_pseudo = look.language == pseudo.LANGUAGE
    english = untranslated(tab.page, path.partition("?")[0]) if is_pseudo else []
    return [*english, *tab.page.evaluate(CUT)]


def without_names(tab: Tab) -> list[str]:
    """Return the parts that have no name, and the headings if one of their levels is skipped."""
    lines = tab.main.aria_snapshot().splitlines()
    levels = tab.page.evaluate(LEVELS)
    is_in_order = all(below <= above + 1 for above, below in itertools.pairwise(levels))
    return [
        *(line for line in lines if NAMELESS.match(line)),
        *([] if levels.count(1) == 1 and is_in_order else [f"levels of headings: {levels}"]),
    ]


def by_keyboard(tab: Tab, path: str, look: Look) -> list[str]:
    """Return which stops of the Tab key nobody sees, and a press that loses the focus, if any."""
    drawn = random.Random(f"{fresh.SEED} {path}")
    if drawn.random() >= SHARE_BY_KEYBOARD:
        return []
    tab.page.set_viewport_size(look.size)
    faults: list[str] = tab.page.evaluate(f"{FOCUS}.unseen()")
    chosen = tab.page.evaluate(f"(share) => {FOCUS}.choose(share)", drawn.random())
    if chosen is not None:
        name, key = chosen
        tab.page.keyboard.press(key)
        tab.settle()
        try:
            tab.await_js(f"() => !{FOCUS}.focused()")
        except TimedOut:
            faults.append(f"{tab.page.evaluate(f'{FOCUS}.focused()')} after a press of {name}")
    return faults


def moved(tab: Tab, settled: float) -> list[Any]:
    """Return what has moved on the page since a moment, if that can be seen."""
    shifts = tab.page.evaluate(MOVED, settled)
    return shifts if sum(value for value, *_words in shifts) > MAX_SHIFT else []


def test_a_figure_whose_node_is_replaced_is_drawn_on_the_new_one(open_tab: OpenTab) -> None:
    tab = open_tab("try?view=sentiment")
    figure = tab.main.locator(".live-figure").first
    expect(figure.locator(".main-svg").first).to_be_attached()
    figure.evaluate("node => node.replaceWith(node.cloneNode(false))")
    expect(figure.locator(".main-svg").first).to_be_attached()
