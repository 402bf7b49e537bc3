"""Every page, wide and narrow, light and dark: drawn whole, nothing sticks out, nothing fails."""

import itertools
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from pages.i18n import languages
from pages.ui.navigation import page_table
from tests.browser.axe import expect_no_violations
from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab
from tests.nightly import IS_NIGHTLY

pytestmark = pytest.mark.browser

SECTIONS = {
    title or "Home": [page.url_path for page in page_table.PAGES.values() if page.section == name]
    for name, title in page_table.SECTIONS.items()
}
WITH_A_RUN = {
    "text": [
        "train?run=recorded-korean",
        "attention?run=recorded-korean",
        "attention?run=recorded-korean&example=own",
        "walk?run=recorded-korean",
        "build?show=transformer-base",
        "parameters?show=gpt2-small&versus=bert-base",
    ],
    "pictures": [
        "train?run=recorded-digits",
        "attention?run=recorded-digits",
        "attention?run=recorded-digits&example=own",
        "walk?run=recorded-digits",
    ],
}
PATHS = SECTIONS | WITH_A_RUN
PHONE = {"width": 390, "height": 844}
PROJECTOR = {"width": 1280, "height": 720}
ZOOMED = {"width": 320, "height": 256}
"""A window of 1280x1024 at 400 % (WCAG 2.2, 1.4.10)."""
IN_SIGHT = """() => [0, innerHeight].map(top => {
    document.querySelector('[data-testid=stMain]').scrollTo(0, top);
    const frame = document.querySelectorAll('[data-testid=stHeader], .st-key-strip');
    return Math.max(...[...frame].map(part => part.getBoundingClientRect().bottom)) / innerHeight;
})"""
"""JavaScript: which share of the height bar and strip cover at the top of the page, and below."""
NAMELESS = re.compile(r"^\s*- (?:button|img|link|slider|combobox|textbox|switch)(?: \[.*\])?:?$")
"""A line of an aria snapshot: a part that a screen reader can say nothing of."""
SHORT_NAMES = """() => {
    const found = [];
    const look = (root) => root.querySelectorAll("*").forEach((node) => {
        const name = node.getAttribute("aria-label") ?? "";
        const isFigure = node.matches("[role=img]:not([aria-hidden=true]), .live-figure");
        if (isFigure && node.getClientRects().length && name.trim().split(/\\s+/).length < 2) {
            found.push(node.outerHTML.slice(0, 200));
        }
        if (node.shadowRoot) look(node.shadowRoot);
    });
    look(document.querySelector("[data-testid=stMain]"));
    return found;
}"""
"""Pictures and figures that are named by one word or none, in components too."""
LEVELS = """[...document.querySelectorAll('[data-testid=stMain] :is(h1, h2, h3, h4, h5, h6)')]
    .map(heading => Number(heading.tagName[1]))"""
FITS = """[document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')]
    .every(part => part.scrollWidth <= part.clientWidth)"""
BRIGHTNESS = """Math.max(...getComputedStyle(document.querySelector('[data-testid=stApp]'))
    .backgroundColor.match(/\\d+/g).map(Number))"""


STAGE = ".stage input[type=range]:not(:disabled)"
LAST = {
    "": [STAGE, ".reader .highest"],
    "train?run=recorded-korean": [STAGE],
    "attention?run=recorded-korean": [
        ".heads canvas",
        ".lines svg",
        ".js-plotly-plot",
    ],
}
"""What each page draws last, in selectors of which Playwright looks into components too."""
MAX_SHIFT = 0.01
MOVED = """async (settled) => {
    const shifts = [];
    const watch = new PerformanceObserver((list) => shifts.push(...list.getEntries()));
    watch.observe({ type: "layout-shift", buffered: true });
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    shifts.push(...watch.takeRecords());
    watch.disconnect();
    const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
    const words = ({ node }) => node?.textContent.slice(0, 40);
    return shifts.filter(({ startTime }) => startTime > painted + settled)
        .map(({ value, sources }) => [value, ...sources.map(words)]);
}"""


def expect_no_shift(tab: Tab, path: str) -> None:
    """Fail where anything moves later than a second after the first paint."""
    for last in LAST[path]:
        tab.main.locator(last).first.wait_for()
    shifts = tab.page.evaluate(MOVED, 1000)
    assert sum(value for value, *_words in shifts) <= MAX_SHIFT, (path, shifts)


THEMES = {"light": ">", "dark": "<"}
"""How bright the page is then, compared with the middle."""
SEEN = {  # a name: paths, language, and the sizes and themes in which each is looked at
    f"{name}-{language}": (paths, language, list(itertools.product((PHONE, PROJECTOR), THEMES)))
    for name, paths in PATHS.items()
    for language in languages()
}
if not IS_NIGHTLY:  # each page in one language, narrow in one theme and wide in the other
    turns = itertools.cycle(itertools.product(languages(), (list(THEMES), list(THEMES)[::-1])))
    SEEN = {
        name: (paths, language, list(zip((PHONE, PROJECTOR), themes, strict=True)))
        for (name, paths), (language, themes) in zip(PATHS.items(), turns, strict=False)
    }


@pytest.mark.parametrize(("paths", "language", "looks"), SEEN.values(), ids=SEEN)
def test_every_page_is_drawn_whole_and_can_be_used_by_all(
    open_tab: OpenTab, paths: list[str], language: str, looks: list[tuple[Any, Any]]
) -> None:
    """Each is opened on a phone: nearly every other test opens its page wide.

    ``TFM_NIGHTLY=1`` looks at each in every language, size and theme.
    """
    tab = open_tab(paths[0], viewport=PHONE, color_scheme=looks[0][1])
    for n, path in enumerate(paths):
        tab.page.set_viewport_size(PHONE)
        if path != paths[0] or language != "en":
            tab.goto(f"{path}{'&' if '?' in path else '?'}lang={language}")
        if path in LAST:
            expect_no_shift(tab, path)
        # every other page backwards, from the theme in which the one before was left
        for viewport, theme in looks[::-1] if n % 2 else looks:
            tab.page.set_viewport_size(viewport)
            tab.page.emulate_media(color_scheme=theme)
            tab.page.wait_for_function(f"() => {BRIGHTNESS} {THEMES[theme]} 128")
            tab.settle()
            expect(tab.main.get_by_role("heading", level=1)).to_be_visible()
            for figure in tab.main.locator(".live-figure").all():
                expect(figure.locator(".main-svg").first).to_be_attached()
            tab.page.wait_for_function(f"() => {FITS}")
            levels = tab.page.evaluate(LEVELS)
            assert levels.count(1) == 1, path
            assert all(below <= above + 1 for above, below in itertools.pairwise(levels)), path
            expect_no_violations(tab.page)
            assert tab.went_wrong() == [], path
        tab.page.wait_for_function(f"() => !({SHORT_NAMES})().length")
        tab.page.set_viewport_size(ZOOMED)
        tab.page.wait_for_function(f"() => {FITS}")
        assert max(tab.page.evaluate(IN_SIGHT)) <= 0.25, path
        snapshot = tab.main.aria_snapshot()
        assert [line for line in snapshot.splitlines() if NAMELESS.match(line)] == [], path


def test_nothing_moves_on_a_projector(open_tab: OpenTab) -> None:
    tab = open_tab(viewport=PROJECTOR)
    for path in LAST:
        if path:
            tab.goto(path)
        expect_no_shift(tab, path)


def test_a_figure_whose_node_is_replaced_is_drawn_on_the_new_one(open_tab: OpenTab) -> None:
    tab = open_tab("encoders")
    figure = tab.main.locator(".live-figure").first
    expect(figure.locator(".main-svg").first).to_be_attached()
    figure.evaluate("node => node.replaceWith(node.cloneNode(false))")
    expect(figure.locator(".main-svg").first).to_be_attached()
