"""A tour by keyboard alone; its bar covers nothing that it speaks of."""

import re

import pytest
from playwright.sync_api import Locator, expect

from pages.app.navigation.page_table import PAGES
from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab
from tests.runs.waiting import wait_until
from tfm_core.lessons import catalogue
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.stops import Stop

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
MAX_TABS = 150
FOCUSED = """() => {
    let node = document.activeElement;
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
    return (node?.getAttribute('aria-label') || node?.textContent || '').trim();
}"""


class Keys:
    """Somebody with a keyboard alone."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.bar = tab.page.locator(".st-key-task-bar")
        self.options = self.bar.locator(".st-key-task-options button")
        self.verdict = self.bar.locator(".st-key-task-verdict")

    def press(self, label: str) -> None:
        """Go to a control by the Tab key, and press it; its text may begin with an icon's name."""
        for _tab in range(MAX_TABS):
            if self.tab.page.evaluate(FOCUSED).endswith(label):
                self.tab.page.keyboard.press("Enter")
                return
            self.tab.page.keyboard.press("Tab")
        raise AssertionError(f"the Tab key does not lead to {label}")

    def at(self, tour: Lesson, number: int) -> Stop:
        """Wait for a stop; what it outlines must be seen, between the strip and the bar."""
        stop = tour.tasks[number - 1]
        assert isinstance(stop, Stop)
        expect(self.bar).to_contain_text(f"{number} of {len(tour.tasks)}")
        expect(self.bar.locator("h2")).to_have_text(tour.words().tasks[stop.id].title)
        expect(self.tab.page).to_have_url(re.compile(rf"/{PAGES[stop.page].url_path}\?"))
        expect(self.tab.page).to_have_url(re.compile(rf"lesson={tour.id}\.{number}"))
        self.tab.settle()
        place = self.found(stop.outlines[0])
        expect(place).to_be_visible()
        expect(self.tab.page.locator(".task-bar .ring").first).to_be_visible()
        wait_until(lambda: self.is_in_room(place), f"{stop.id} is in the room above the bar")
        return stop

    def is_in_room(self, place: Locator) -> bool:
        """Return whether an element stands between strip and bar, or, if larger, begins there."""
        boxes = [one.bounding_box() for one in (place, self.bar, self.tab.strip)]
        if None in boxes:
            return False
        box, bar, strip = boxes
        top, edge = strip["y"] + strip["height"], bar["y"]
        if box["height"] <= edge - top:
            return box["y"] >= top - 1 and box["y"] + box["height"] <= edge + 1
        return top - 1 <= box["y"] <= (top + edge) / 2

    def found(self, selector: str) -> Locator:
        """Return what a stop names, perhaps inside a component."""
        host, _inside, inner = selector.partition(" >>> ")
        found = self.tab.page.locator(host)
        return (found.locator(inner) if inner else found).first

    def commit(self, stop: Stop) -> None:
        """Choose the first option; the answer comes from the run, perhaps not at once."""
        if not stop.question:
            return
        self.press(self.options.first.inner_text())
        expect(self.verdict).to_have_text(re.compile(r"(Right|No)\."))
        expect(self.tab.page.locator(".task-bar .veil")).to_have_count(0)
        for selector in stop.veils:
            expect(self.found(selector)).to_have_js_property("inert", False)

    def expect_hidden(self, stop: Stop) -> None:
        """Go through the page by the Tab key: nothing veiled takes the focus, or is read out."""
        veiled = self.found(stop.veils[0])
        expect(veiled).to_have_js_property("inert", True)
        for _tab in range(MAX_TABS):
            self.tab.page.keyboard.press("Tab")
            assert not veiled.evaluate("(node) => node.matches(':focus-within')")
            if self.tab.page.evaluate(FOCUSED) in ("Next", "Finish"):
                return
        raise AssertionError("the Tab key does not lead on")

    def go_on(self, name: str) -> None:
        expect(self.bar.get_by_role("button", name=name)).to_be_enabled()
        self.press(name)


def test_a_tour_by_keyboard_alone_on_a_phone_is_reloaded_folded_left_and_resumed(
    open_tab: OpenTab,
) -> None:
    tour = catalogue.lesson("digit")
    tab = open_tab("attention?run=recorded-digits&tour=digit.4", viewport=PHONE)
    keys = Keys(tab)
    stop = keys.at(tour, 4)
    keys.expect_hidden(stop)
    keys.commit(stop)
    verdict = keys.verdict.inner_text()
    tab.reload()
    keys.at(tour, 4)
    expect(keys.verdict).to_have_text(verdict)
    expect(keys.options.first).to_have_text(re.compile("^[✓✗]"))
    keys.press("Fold the task")
    expect(keys.bar.locator(".st-key-task-told")).to_be_hidden()
    keys.at(tour, 4)
    keys.press("Unfold the task")
    keys.go_on("Next")
    keys.at(tour, 5)
    expect(keys.bar.locator("h2")).to_be_focused()
    tab.page.keyboard.press("Escape")
    expect(keys.bar).to_have_count(0)
    expect(tab.title).to_be_focused()

    tab.goto("")
    keys.press("Resume (5 of 6)")
    keys.at(tour, 5)
    keys.go_on("Next")
    stop = keys.at(tour, 6)
    keys.expect_hidden(stop)
    keys.commit(stop)
    keys.go_on("Finish")
    expect(keys.bar).to_have_count(0)
    assert "lesson=" not in tab.page.url


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "page", "way_in"),
    [("translate", "", "Take the tour"), ("discover", "findings", "Tour: eight findings")],
)
def test_what_each_stop_speaks_of_is_in_sight(
    open_tab: OpenTab, name: str, page: str, way_in: str
) -> None:
    tab, tour = open_tab(page, viewport=PHONE), catalogue.lesson(name)
    keys = Keys(tab)
    keys.press(way_in)
    for number in range(1, len(tour.tasks) + 1):
        stop = keys.at(tour, number)
        expect(keys.bar.locator("h2")).to_be_focused()
        if stop.starts:
            offer = keys.bar.get_by_role("button", name=re.compile("^Use the recorded run"))
            keys.press(offer.inner_text())
            continue
        keys.commit(stop)
        keys.go_on("Finish" if number == len(tour.tasks) else "Next")
    expect(keys.bar).to_have_count(0)
