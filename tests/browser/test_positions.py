"""Positions: waves that a control bends, words that are shuffled, links to each view."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

SLOWEST = "Array.from(node._fullData[0].y).at(-1)"


def test_another_base_changes_the_slowest_wave(open_tab: OpenTab) -> None:
    tab = open_tab("positions")
    before = tab.plotly("positions-wavelengths", SLOWEST)
    base = tab.main.get_by_role("slider", name="Base").first
    base.press("ArrowLeft")
    tab.await_plotly("positions-wavelengths", f"{SLOWEST} < arg", before)


def test_a_run_that_is_chosen_on_a_page_stands_above_it(open_tab: OpenTab) -> None:
    tab = open_tab("positions?view=learned&run=recorded-korean")
    look = tab.main.get_by_role("button", name=re.compile("Look at"))
    said = re.search("“(.+)”", look.inner_text())
    assert said is not None
    look.click()
    expect(tab.strip.get_by_text(said[1], exact=True)).to_be_visible()


def test_shuffled_words_are_noticed_by_all_but_the_bag(open_tab: OpenTab) -> None:
    tab = open_tab("positions?view=shuffle")
    said = tab.main.get_by_text(re.compile("^Shuffled: "))
    before = said.inner_text()
    changes = tab.plotly("positions-noticed", "Array.from(node._fullData[0].x)")
    assert changes[0] < 1e-5
    assert min(changes[1:]) > 0.01
    tab.button("Shuffle again").click()
    expect(said).not_to_have_text(before)
    sentence = tab.main.get_by_role("textbox", name="A sentence")
    sentence.fill("")
    sentence.press("Enter")
    expect(tab.main.get_by_role("alert")).to_contain_text("Type at least one word")


def test_the_link_says_the_view_by_name_and_an_older_link_is_understood(open_tab: OpenTab) -> None:
    tab = open_tab("positions?positions-view=Rotary")
    expect(tab.page).to_have_url(re.compile(r"\?view=rotary$"))
    expect(tab.main.get_by_role("radio", name="Rotary")).to_be_checked()
    other = open_tab("positions?view=upside-down")
    expect(other.main.get_by_role("alert")).to_contain_text("view is “upside-down” in the link")
