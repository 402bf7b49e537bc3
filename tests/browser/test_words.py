"""Words into tensors: a slider merges tokens, words move while they learn, bad input is said."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

MOVING = "words?view=moving&run=recorded-korean"
FIGURE = "words-moving"
SLIDER = "node._fullLayout.sliders[0]"
LAST = f"{SLIDER}.steps.length - 1"
PLACES = "String(node._fullData.map(group => Array.from(group.x)))"
RANGES = "String([node._fullLayout.xaxis.range, node._fullLayout.yaxis.range])"

COVERING = """[...node.querySelectorAll('.textpoint text')]
    .filter(text => text.style.visibility !== 'hidden')
    .map(text => text.getBoundingClientRect())
    .filter((one, place, all) => all.slice(0, place).some(other =>
        one.left < other.right && other.left < one.right
        && one.top + 3 < other.bottom && other.top + 3 < one.bottom)).length"""


def test_merges_make_fewer_chips(open_tab: OpenTab) -> None:
    tab = open_tab("words")
    chips = tab.main.locator(".tfm-tokens .chip")
    slider = tab.main.get_by_role("slider", name="Merges")
    slider.press("Home")
    expect(tab.main.get_by_text("First merge:")).to_be_visible()
    tab.settle()
    characters = chips.count()
    slider.press("End")
    expect(tab.main.get_by_text(re.compile(r"^Merge \d+:"))).to_be_visible()
    tab.settle()
    assert chips.count() < characters


def test_bad_input_gets_its_sentence_and_stays(open_tab: OpenTab) -> None:
    tab = open_tab("words?view=batch")
    box = tab.main.get_by_role("textbox", name="Your sentences")
    box.fill("a\n" * 9)
    box.press("Control+Enter")
    expect(tab.main.get_by_role("alert")).to_contain_text("There are 9 sentences")
    expect(box).to_have_value("a\n" * 9)


def test_words_move_and_the_axes_stay(open_tab: OpenTab) -> None:
    tab = open_tab(MOVING)
    last, ranges = tab.plotly(FIGURE, PLACES), tab.plotly(FIGURE, RANGES)
    before = tab.drawn
    play, pause = tab.figure(FIGURE).locator(".updatemenu-button").all()
    play.click()
    tab.await_plotly(FIGURE, f"{PLACES} !== arg && {SLIDER}.active < {LAST}", last)
    pause.click()
    rail = tab.figure(FIGURE).locator(".slider-rail-touch-rect")
    rail.click(position={"x": rail.bounding_box()["width"] - 3, "y": 5})
    tab.await_plotly(FIGURE, f"{PLACES} === arg && {SLIDER}.active === {LAST}", last)
    assert tab.plotly(FIGURE, RANGES) == ranges
    assert tab.drawn == before, "playing asks the server"


def test_no_word_stands_on_another(open_tab: OpenTab) -> None:
    tab = open_tab(MOVING, viewport={"width": 390, "height": 844})
    tab.await_plotly(FIGURE, "node.querySelectorAll('.textpoint text').length > 50", None)
    tab.await_plotly(FIGURE, f"{COVERING} === 0", None)
