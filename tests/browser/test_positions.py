"""Positions: waves that a control bends, words that are shuffled, a run that is chosen."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

SLOWEST = "Array.from(node._fullData[0].y).at(-1)"


def test_a_base_bends_the_waves_words_are_shuffled_and_a_run_is_chosen(open_tab: OpenTab) -> None:
    tab = open_tab("positions")
    before = tab.plotly("positions-wavelengths", SLOWEST)
    base = tab.main.get_by_role("slider", name="Base").first
    base.press("ArrowLeft")
    tab.await_plotly("positions-wavelengths", f"{SLOWEST} < arg", before)

    # shuffled words are noticed by all but the bag
    tab.choose("Shuffle the words")
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

    # a run that is chosen here stands above the page
    tab.goto("positions?view=learned&run=recorded-korean")
    look = tab.main.get_by_role("button", name=re.compile("Open “"))
    expect(look).to_have_text(re.compile("“.+”"))
    name = re.search("“(.+)”", look.inner_text())
    assert name is not None
    look.click()
    expect(tab.strip.get_by_text(name[1], exact=True)).to_be_visible()
