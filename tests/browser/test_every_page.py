"""Every page, wide and narrow, light and dark: drawn whole, nothing sticks out, nothing fails."""

import itertools
import re

import pytest
from playwright.sync_api import expect

from pages.ui.navigation import page_table
from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

PAGES = {page.name: page.url_path for page in page_table.PAGES.values()} | {
    "text-run": "train?run=recorded-korean",
    "image-run": "train?run=recorded-digits",
    "text-attention": "attention?run=recorded-korean",
    "image-attention": "attention?run=recorded-digits",
    "own-text": "attention?run=recorded-korean&example=own",
    "own-picture": "attention?run=recorded-digits&example=own",
    "compared": "parameters?show=gpt2-small&versus=bert-base",
    "text-model": "build?show=transformer-base",
    "text-walk": "walk?run=recorded-korean",
    "image-walk": "walk?run=recorded-digits",
}
PHONE = {"width": 390, "height": 844}
PROJECTOR = {"width": 1280, "height": 720}
NAMELESS = re.compile(r"^\s*- (?:button|img|link|slider|combobox|textbox|switch)(?: \[.*\])?:?$")
"""A line of an aria snapshot: a part that a screen reader can say nothing of."""
LEVELS = """[...document.querySelectorAll('[data-testid=stMain] :is(h1, h2, h3, h4, h5, h6)')]
    .map(heading => Number(heading.tagName[1]))"""
FITS = """[document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')]
    .every(part => part.scrollWidth <= part.clientWidth)"""
BRIGHTNESS = """Math.max(...getComputedStyle(document.querySelector('[data-testid=stApp]'))
    .backgroundColor.match(/\\d+/g).map(Number))"""


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_a_page_is_drawn_whole_narrow_and_wide_in_both_themes(open_tab: OpenTab, path: str) -> None:
    """It is opened on a phone: nearly every other test opens its page wide.

    No width depends on the theme, so each occurs with one of the two.
    """
    tab = open_tab(path, viewport=PHONE, color_scheme="light")
    for viewport, theme, comparison in ((PHONE, "light", ">"), (PROJECTOR, "dark", "<")):
        tab.page.set_viewport_size(viewport)
        tab.page.emulate_media(color_scheme=theme)
        tab.page.wait_for_function(f"() => {BRIGHTNESS} {comparison} 128")
        tab.settle()
        expect(tab.main.get_by_role("heading", level=1)).to_be_visible()
        for figure in tab.main.locator(".live-figure").all():
            expect(figure.locator(".main-svg").first).to_be_attached()
        tab.page.wait_for_function(f"() => {FITS}")
        levels = tab.page.evaluate(LEVELS)
        assert levels.count(1) == 1
        assert all(below <= above + 1 for above, below in itertools.pairwise(levels))
        assert tab.went_wrong() == []
    snapshot = tab.main.aria_snapshot()
    assert [line for line in snapshot.splitlines() if NAMELESS.match(line)] == []
