"""Each tour, played to its end by keyboard alone; its bar covers nothing that it speaks of."""

import re

import pytest
from playwright.sync_api import Locator, expect

from pages.ui.navigation.page_table import PAGES
from pages.ui.tour.stops import TOURS, Stop, Tour
from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.browser.tab import Tab
from tests.runs.waiting import wait_until

pytestmark = pytest.mark.browser

PHONE, PROJECTOR = {"width": 390, "height": 844}, {"width": 1280, "height": 720}
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
        self.bar = tab.page.locator(".tour .bar")

    def press(self, label: str) -> None:
        """Go to a control by the Tab key, and press it; its text may begin with an icon's name."""
        for _tab in range(MAX_TABS):
            if self.tab.page.evaluate(FOCUSED).endswith(label):
                self.tab.page.keyboard.press("Enter")
                return
            self.tab.page.keyboard.press("Tab")
        raise AssertionError(f"the Tab key does not lead to {label}")

    def at(self, tour: Tour, number: int) -> Stop:
        """Wait for a stop; what it outlines must be seen, between the strip and the bar."""
        stop = tour.stops[number - 1]
        expect(self.bar.locator(".count")).to_have_text(f"{number} of {len(tour.stops)}")
        expect(self.bar.locator("h2")).to_have_text(stop.title)
        expect(self.tab.page).to_have_url(re.compile(rf"/{PAGES[stop.page].url_path}\?"))
        expect(self.tab.page).to_have_url(re.compile(rf"tour={tour.name}\.{number}"))
        self.tab.settle()
        place = self.found(stop.outlines[0])
        expect(place).to_be_visible()
        expect(self.tab.page.locator(".tour .ring").first).to_be_visible()
        wait_until(lambda: self.is_in_room(place), f"{stop.name} is in the room above the bar")
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
        if stop.asks is None:
            return
        self.press(self.bar.locator(".option").first.inner_text())
        expect(self.bar.locator(".verdict")).to_have_text(re.compile(r"^(Right|No)\."))
        expect(self.tab.page.locator(".tour .veil")).to_have_count(0)
        for selector in stop.veils:
            expect(self.found(selector)).to_have_js_property("inert", False)

    def hidden(self, stop: Stop) -> None:
        """Go through the page by the Tab key: nothing veiled takes the focus, or is read out."""
        veiled = self.found(stop.veils[0])
        expect(veiled).to_have_js_property("inert", True)
        for _tab in range(MAX_TABS):
            self.tab.page.keyboard.press("Tab")
            assert not veiled.evaluate("(node) => node.matches(':focus-within')")
            if self.tab.page.evaluate(FOCUSED) in ("Next", "Finish"):
                return
        raise AssertionError("the Tab key does not lead on")

    def go_on(self, name: str = "Next") -> None:
        expect(self.bar.get_by_role("button", name=name)).to_have_attribute(
            "aria-disabled", "false"
        )
        self.press(name)


def play(keys: Keys, tour: Tour, *, trains: bool, reload_at: int = 0) -> None:
    """Play a tour from Home to its end. trains: a run of one's own, else the recorded one."""
    tab, last = keys.tab, len(tour.stops)
    for number in range(1, last + 1):
        stop = keys.at(tour, number)
        assert tab.page.evaluate(FOCUSED) == stop.title
        if stop.starts:
            name = "^Train it" if trains else "^Use the recorded run"
            keys.press(keys.bar.get_by_role("button", name=re.compile(name)).inner_text())
            continue
        keys.commit(stop)
        if number == reload_at:
            verdict = keys.bar.locator(".verdict").inner_text()
            tab.reload()
            keys.at(tour, number)
            expect(keys.bar.locator(".verdict")).to_have_text(verdict)
            expect(keys.bar.locator(".option").first).to_have_attribute("aria-pressed", "true")
        keys.go_on("Finish" if number == last else "Next")
    expect(keys.bar).to_have_count(0)
    assert "tour=" not in tab.page.url


def test_the_first_tour_over_ones_own_run_by_keyboard_alone(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab, tour = open_tab(viewport=PROJECTOR), TOURS["translate"]
    keys = Keys(tab)
    keys.press("Take the tour")
    play(keys, tour, trains=True)
    run = server.store.get(tab.run_id)
    assert run.meta.preset == tour.preset
    tab.goto("")
    expect(tab.main.get_by_role("button", name="Resume")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "way_in", "viewport", "reload_at"),
    [
        ("translate", "Take the tour", PHONE, 5),
        ("digit", "Tour: six stops", PROJECTOR, 3),
    ],
)
def test_a_tour_over_the_recorded_run_with_a_reload_in_the_middle(
    open_tab: OpenTab, name: str, way_in: str, viewport: dict[str, int], reload_at: int
) -> None:
    keys = Keys(open_tab(viewport=viewport))
    keys.press(way_in)
    play(keys, TOURS[name], trains=False, reload_at=reload_at)


@pytest.mark.parametrize("viewport", [PROJECTOR, PHONE])
def test_the_tour_of_findings_from_the_page_of_one(
    open_tab: OpenTab, viewport: dict[str, int]
) -> None:
    keys = Keys(open_tab(viewport=viewport))
    keys.tab.goto("grokking")
    keys.press("Tour: eight findings")
    play(keys, TOURS["discover"], trains=False)


def test_the_second_tour_is_folded_left_and_resumed_on_a_phone(open_tab: OpenTab) -> None:
    tab, tour = open_tab(viewport=PHONE), TOURS["digit"]
    keys = Keys(tab)
    tab.goto(f"train?run={tour.recorded}&tour=digit.3")
    keys.at(tour, 3)
    keys.press("Fold the tour")
    expect(keys.bar.locator(".told")).to_be_hidden()
    keys.at(tour, 3)
    keys.press("Unfold the tour")
    tab.page.keyboard.press("Escape")
    expect(keys.bar).to_have_count(0)
    tab.goto("")
    keys.press("Resume (3 of 6)")
    for number in range(3, len(tour.stops) + 1):
        stop = keys.at(tour, number)
        if stop.veils:
            keys.hidden(stop)
        keys.commit(stop)
        keys.go_on("Finish" if number == len(tour.stops) else "Next")
    expect(keys.bar).to_have_count(0)
