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
        place = self.outlined(stop)
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

    def outlined(self, stop: Stop) -> Locator:
        place = self.tab.page
        host, _inside, inner = stop.outlines[0].partition(" >>> ")
        found = place.locator(host)
        return (found.locator(inner) if inner else found).first

    def commit(self, stop: Stop) -> None:
        """Choose the first option; the answer comes from the run, perhaps not at once."""
        if stop.asks is None:
            return
        self.press(self.bar.locator(".option").first.inner_text())
        expect(self.bar.locator(".verdict")).to_have_text(re.compile(r"^(Right|No)\."))
        expect(self.tab.page.locator(".tour .veil")).to_have_count(0)

    def go_on(self, name: str = "Next") -> None:
        expect(self.bar.get_by_role("button", name=name)).to_have_attribute(
            "aria-disabled", "false"
        )
        self.press(name)


def test_the_first_tour_over_ones_own_run_by_keyboard_alone(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab, tour = open_tab(viewport=PROJECTOR), TOURS["translate"]
    keys = Keys(tab)
    keys.press("Take the tour")
    for number in range(1, len(tour.stops) + 1):
        stop = keys.at(tour, number)
        assert tab.page.evaluate(FOCUSED) == stop.title
        if stop.starts:
            label = keys.bar.get_by_role("button", name=re.compile("^Train it")).inner_text()
            keys.press(label)
            continue
        keys.commit(stop)
        keys.go_on("Finish" if number == len(tour.stops) else "Next")
    expect(keys.bar).to_have_count(0)
    assert "tour=" not in tab.page.url
    run = server.store.get(tab.run_id)
    assert run.meta.preset == tour.preset
    tab.goto("")
    expect(tab.main.get_by_role("button", name="Resume")).to_have_count(0)


def test_the_second_tour_on_a_phone_with_a_reload_in_the_middle(open_tab: OpenTab) -> None:
    tab, tour = open_tab(viewport=PHONE), TOURS["digit"]
    keys = Keys(tab)
    keys.press("Tour: six stops")
    for number in range(1, len(tour.stops) + 1):
        stop = keys.at(tour, number)
        if number == 3:
            tab.reload()
            keys.at(tour, number)
            keys.press("Fold the tour")
            expect(keys.bar.locator(".told")).to_be_hidden()
            keys.at(tour, number)
            keys.press("Unfold the tour")
            tab.page.keyboard.press("Escape")
            expect(keys.bar).to_have_count(0)
            tab.goto("")
            keys.press("Resume (3 of 6)")
            keys.at(tour, number)
        keys.commit(stop)
        keys.go_on("Finish" if number == len(tour.stops) else "Next")
    expect(keys.bar).to_have_count(0)
