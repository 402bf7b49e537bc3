"""What is on a page stays where it is: nothing that comes later moves it."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

SCREENS = {"projector": {"width": 1280, "height": 720}, "phone": {"width": 390, "height": 844}}
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
MAX = 0.01
MOVED = """async (settled) => {
    const found = [];
    const watch = new PerformanceObserver((list) => found.push(...list.getEntries()));
    watch.observe({ type: "layout-shift", buffered: true });
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    found.push(...watch.takeRecords());
    watch.disconnect();
    const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
    const words = ({ node }) => node?.textContent.slice(0, 40);
    return found.filter(({ startTime }) => startTime > painted + settled)
        .map(({ value, sources }) => [value, ...sources.map(words)]);
}"""


def moved(tab: Tab, settled: int) -> list[list[object]]:
    """Return what moved by how much, and its words, later than so long after the first paint."""
    found: list[list[object]] = tab.page.evaluate(MOVED, settled)
    return found


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("path", LAST)
def test_nothing_moves_a_second_after_the_first_paint(
    open_tab: OpenTab, path: str, screen: str
) -> None:
    tab = open_tab(path, viewport=SCREENS[screen])
    for last in LAST[path]:
        tab.main.locator(last).first.wait_for()
    found = moved(tab, 1000)
    assert sum(float(str(value)) for value, *_nodes in found) <= MAX, found
