"""The mask lab: cells that are clicked, in long sentences too."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser


def cell(tab: Tab, name: str, query: int, key: int) -> Locator:
    """Return a cell of a map, from 0."""
    return tab.main.locator(f".lab .cell[data-map={name}][data-q='{query}'][data-k='{key}']")


def test_cells_are_clicked_in_short_and_in_long_sentences(open_tab: OpenTab) -> None:
    tab = open_tab("masks?mask=none")
    expect(cell(tab, "weights", 0, 1)).not_to_have_text("")
    before = cell(tab, "weights", 0, 1).inner_text()
    cell(tab, "mask", 0, 0).click()
    expect(cell(tab, "mask", 0, 0)).to_have_text("×")
    expect(cell(tab, "weights", 0, 1)).not_to_have_text(before)
    expect(tab.main.get_by_text("35 of 36 pairs are allowed.")).to_be_visible()
    tab.button("Undo my clicks (1)").click()
    expect(cell(tab, "weights", 0, 1)).to_have_text(before)

    # a sentence of 46 tokens fits and its cells can be clicked
    tab.settle()
    tab.choose("Causal")
    expect(tab.main.get_by_text("21 of 36 pairs")).to_be_visible()
    sentence = tab.main.get_by_role("textbox", name="Your sentence")
    sentence.fill(" ".join(f"word{n}" for n in range(46)))
    sentence.press("Enter")
    expect(tab.main.get_by_text(f"{46 * 47 // 2} of {46 * 46} pairs")).to_be_visible()
    cell(tab, "mask", 3, 44).click()
    expect(tab.main.get_by_text(f"{46 * 47 // 2 + 1} of {46 * 46} pairs")).to_be_visible()
    box = cell(tab, "mask", 3, 44).bounding_box()
    assert box is not None
    assert box["width"] >= 16
    assert box["height"] >= 16
