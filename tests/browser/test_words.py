"""Words become numbers: what is chosen can be read, and words move while they learn."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

MOVING = "numbers?figure=moving&run=recorded-korean"
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
BLUES = {"light": "rgb(31, 106, 168)", "dark": "rgb(109, 179, 234)"}
GREYS = {"light": "rgb(94, 100, 107)", "dark": "rgb(163, 168, 176)"}
COLOUR = "node => { const look = getComputedStyle(node); return [look.color, look.opacity]; }"


def test_what_is_chosen_can_be_read_in_both_themes(open_tab: OpenTab) -> None:
    tab = open_tab("numbers")
    for theme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=theme)
        for where, colour in {
            "[role=radio][aria-checked=true] p": BLUES[theme],
            "[data-testid=stSliderThumbValue]": BLUES[theme],
            "[data-testid=stCaptionContainer]": GREYS[theme],
        }.items():
            expect(tab.main.locator(where).first).to_have_css("color", colour)
            assert tab.main.locator(where).first.evaluate(COLOUR) == [colour, "1"], where


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

    # no word stands on another on a phone
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.reload()
    tab.await_plotly(FIGURE, "node.querySelectorAll('.textpoint text').length > 50", None)
    tab.await_plotly(FIGURE, f"{COVERING} === 0", None)


def test_an_answer_counts_in_the_title_at_once(open_tab: OpenTab) -> None:
    tab = open_tab("numbers")
    done = tab.main.locator(".st-key-page-done")
    for n in (1, 2):
        tab.button("Show the answer").nth(n - 1).click()  # which draws the part around it alone
        expect(done).to_have_text(f"{n} of 4 answered")
