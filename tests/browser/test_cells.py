"""Cells that are pressed: masks, numbers by hand, tensors, heads, written tokens, errors."""

import re

import pytest
from playwright.sync_api import Locator, expect

from pages.app.navigation import ticks
from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser


def number(tab: Tab, board: str, row: int, column: int) -> Locator:
    """Return a cell of a board of numbers, from 0."""
    selector = f'[data-board="{board}"][data-row="{row}"][data-column="{column}"]'
    return tab.main.locator(f".sheet button{selector}")


def pair(tab: Tab, name: str, query: int, key: int) -> Locator:
    """Return a cell of the mask that is edited, or of the weights that follow from it, from 0."""
    board = tab.main.locator(".sheet figure").nth(1 if name == "mask" else 3)
    return board.locator(f"[data-row='{query}'][data-column='{key}']")


def test_a_mask_is_changed_by_clicks_in_short_and_in_long_sentences(open_tab: OpenTab) -> None:
    tab = open_tab("masks?mask=none&seeded=true&text=the cat sees the small dog")
    expect(pair(tab, "weights", 0, 1)).not_to_have_text("")
    before = pair(tab, "weights", 0, 1).inner_text()
    pair(tab, "mask", 0, 0).click()
    expect(pair(tab, "mask", 0, 0)).to_have_text("✕")
    expect(pair(tab, "weights", 0, 1)).not_to_have_text(before)
    expect(tab.main.get_by_text("35 of 36 pairs are allowed.")).to_be_visible()
    tab.button("Undo my clicks (1)").click()
    expect(pair(tab, "weights", 0, 1)).to_have_text(before)

    # the browser remembers that something was done here
    tab.settle()
    tab.choose("Causal")
    expect(tab.main.get_by_text("pairs are allowed")).to_be_visible()
    tab.await_js("text => document.cookie.includes(text)", f"{ticks.COOKIE}=masks:")

    # a sentence of 46 tokens fits and its cells can be clicked
    sentence = tab.main.get_by_role("textbox", name="What the decoder has written so far")
    sentence.fill(" ".join(f"word{n}" for n in range(46)))
    sentence.press("Enter")
    expect(tab.main.get_by_text(f"{46 * 47 // 2} of {46 * 46} pairs")).to_be_visible()
    pair(tab, "mask", 3, 44).click()
    expect(tab.main.get_by_text(f"{46 * 47 // 2 + 1} of {46 * 46} pairs")).to_be_visible()
    box = pair(tab, "mask", 3, 44).bounding_box()
    assert box is not None
    assert box["width"] >= 16
    assert box["height"] >= 16


def test_numbers_by_hand_answer_clicks_keys_and_the_pointer(open_tab: OpenTab) -> None:
    tab = open_tab("by-hand?vectors=1,0,0;0,1,0;0,0,1")
    expect(number(tab, "weights", 2, 2)).to_have_text("0.47")
    number(tab, "mask", 2, 0).click()
    expect(number(tab, "weights", 2, 0)).to_have_text("0.00")
    expect(number(tab, "weights", 2, 2)).to_have_text("0.64")
    expect(number(tab, "masked", 2, 0)).to_have_text("lowest")
    tab.settle()
    tab.button("Undo my clicks on the mask (1)").click()
    expect(number(tab, "weights", 2, 2)).to_have_text("0.47")

    # a picked number is written out and its parts light up
    number(tab, "scores", 0, 0).click()
    told = tab.main.locator(".sheet .arithmetic").first
    expect(told).to_contain_text("q(I) · k(I) = 1.00 × 1.00 + 0.00 × 0.00 + 0.00 × 0.00 = 1.00")
    number(tab, "scores", 0, 0).press("ArrowDown")
    expect(number(tab, "scores", 1, 0)).to_be_focused()
    number(tab, "scores", 1, 0).press("Enter")
    expect(told).to_contain_text("q(love) · k(I)")
    number(tab, "scores", 2, 1).hover()
    expect(number(tab, "query", 2, 0)).to_have_class(re.compile(r"\blit\b"))
    expect(number(tab, "key", 0, 1)).to_have_class(re.compile(r"\blit\b"))
    expect(number(tab, "query", 1, 0)).not_to_have_class(re.compile(r"\blit\b"))

    # the slider over the learning stays in sight above the numbers
    tab.choose("Projections")
    tab.settle()
    step = tab.main.get_by_test_id("stSlider").filter(has_text="Training step")
    weights = tab.main.locator(".st-key-hand-overview figure").nth(3)
    expect(weights).to_contain_text("Weights")
    step.scroll_into_view_if_needed()
    expect(weights).to_be_in_viewport(ratio=0.98)
    last = number(tab, "output", 2, 0)
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    expect(step).to_be_in_viewport()


def test_an_element_of_a_tensor_is_written_out_where_it_is_clicked(open_tab: OpenTab) -> None:
    tab = open_tab("numbers?figure=operation&op=matmul")
    number(tab, "y", 1, 0).click()
    told = tab.main.locator(".sheet .arithmetic")
    expect(told).to_have_text("y[1][0] = 3 × 0 + 4 × 2 + 5 × 4 = 28")
    expect(tab.main.locator(".sheet .used")).to_have_count(6)


def test_a_press_on_a_head_switches_it_off_and_on_or_follows_its_paths(open_tab: OpenTab) -> None:
    tab = open_tab("knockouts?run=recorded-korean&off=none&view=causes")
    expect(tab.main.get_by_text("Everything is on.")).to_be_visible()
    head = tab.main.locator('button[data-code="decoder.1.cross.2"]')
    expect(head).to_have_attribute("aria-pressed", "false")
    expect(head).to_have_accessible_name(re.compile("^decoder layer 1, cross-attention, head 2"))
    head.click()
    expect(head).to_have_attribute("aria-pressed", "true")
    expect(tab.main.get_by_text("Everything is on.")).to_have_count(0)
    expect(tab.page).to_have_url(re.compile("off=decoder.1.cross.2"))
    head.focus()
    tab.page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-pressed", "false")
    expect(tab.main.get_by_text("Everything is on.")).to_be_visible()
    tab.await_plotly("knockouts-patched-heads", "node._fullData[0].type === 'heatmap'")
    before = tab.plotly("knockouts-paths", "String(node._fullData[0].x)")
    for key in ("ArrowDown", "Enter"):
        tab.figure("knockouts-patched-heads").press(key)
    expect(tab.page).to_have_url(re.compile(r"\bhead=decoder\.1\.self\.1\b"))
    tab.await_plotly("knockouts-paths", "String(node._fullData[0].x) !== arg", before)


def test_a_token_is_put_in_and_taken_back_and_the_link_has_it(open_tab: OpenTab) -> None:
    tab = open_tab("try?run=recorded-korean&at=2")
    tokens, desk = tab.main.locator(".desk .written button"), tab.main.locator(".desk")
    expect(desk.locator(".say")).to_have_text(re.compile("^Token 2 of"))
    tab.main.get_by_role("button", name="Previous token").click()
    expect(desk.locator(".say")).to_have_text(re.compile("^Token 1 of"))
    expect(tab.page).to_have_url(re.compile("at=1"))
    was = tokens.first.locator("span").first.inner_text()
    desk.locator(".choice").nth(2).click()
    expect(desk.locator(".forced")).to_have_count(1)
    put = desk.locator(".forced span").first.inner_text()
    assert put != was
    expect(desk.get_by_text("Without your tokens:")).to_be_visible()
    expect(tab.page).to_have_url(re.compile("forced=1-"))
    desk.get_by_role("button", name="Undo “").click()
    expect(desk.locator(".forced")).to_have_count(0)
    expect(tokens.first.locator("span").first).to_have_text(was)


def test_a_cell_of_a_confusion_matrix_is_picked_by_keys(open_tab: OpenTab) -> None:
    tab = open_tab("mistakes?run=recorded-digits")
    matrix = tab.main.locator(".st-key-mistakes-matrix .live-figure")
    expect(matrix.locator(".main-svg").first).to_be_attached()
    matrix.focus()
    for _press in range(5):
        matrix.press("ArrowRight")
    matrix.press("Enter")
    expect(tab.main.get_by_text("0 taken for 5: 1")).to_be_visible()
    expect(tab.page).to_have_url(re.compile("cell=0(,|%2C)5"))
