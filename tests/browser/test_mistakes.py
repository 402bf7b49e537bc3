"""Where it fails: a cell is pressed, other weights answer, a card leads to Attention."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

MATRIX = ".st-key-mistakes-matrix .live-figure"


def test_a_cell_a_step_and_a_card_are_a_press_away(open_tab: OpenTab) -> None:
    tab = open_tab("mistakes?run=recorded-digits")
    matrix = tab.main.locator(MATRIX)
    expect(matrix.locator(".main-svg").first).to_be_attached()
    expect(tab.main.get_by_text("22 of 500")).to_be_visible()
    matrix.focus()
    for _press in range(5):
        matrix.press("ArrowRight")
    matrix.press("Enter")
    expect(tab.main.get_by_text("0 taken for 5: 1")).to_be_visible()
    expect(tab.page).to_have_url(re.compile("cell=0(,|%2C)5"))
    slider = tab.main.get_by_role("slider", name="Weights of step")
    slider.press("ArrowLeft")
    expect(tab.main.get_by_text("35 of 500")).to_be_visible()
    expect(tab.page).to_have_url(re.compile("step=1250"))
    tab.button("All errors").click()
    expect(tab.main.get_by_text("taken for")).to_have_count(0)
    tab.main.get_by_role("img", name=re.compile("^Validation picture ")).first.click(force=True)
    expect(tab.title).to_have_text(re.compile("Attention"))
    expect(tab.page).to_have_url(re.compile("own=validation-[0-9]+"))
    expect(tab.main.get_by_text("of the first 500 validation examples are wrong")).to_be_visible()
