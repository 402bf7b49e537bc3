"""Tables of numbers in a browser: attention by hand, and tensors by sight."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser
ONE_HOT = "by-hand?vectors=1,0,0;0,1,0;0,0,1"


def cell(tab: Tab, board: str, row: int, column: int) -> Locator:
    selector = f'[data-board="{board}"][data-row="{row}"][data-column="{column}"]'
    return tab.main.locator(f".sheet button{selector}")


def test_the_numbers_answer_clicks_and_keys_and_a_link_opens_them_again(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(ONE_HOT)
    expect(cell(tab, "weights", 2, 2)).to_have_text("0.47")
    cell(tab, "mask", 2, 0).click()
    expect(cell(tab, "weights", 2, 0)).to_have_text("0.00")
    expect(cell(tab, "weights", 2, 2)).to_have_text("0.64")
    expect(cell(tab, "masked", 2, 0)).to_have_text("lowest")
    tab.settle()
    tab.button("Undo my clicks on the mask (1)").click()
    expect(cell(tab, "weights", 2, 2)).to_have_text("0.47")

    # a picked number is written out and its parts light up
    cell(tab, "scores", 0, 0).click()
    told = tab.main.locator(".sheet .arithmetic").first
    expect(told).to_contain_text("q(I) · k(I) = 1.00 × 1.00 + 0.00 × 0.00 + 0.00 × 0.00 = 1.00")
    cell(tab, "scores", 0, 0).press("ArrowDown")
    expect(cell(tab, "scores", 1, 0)).to_be_focused()
    cell(tab, "scores", 1, 0).press("Enter")
    expect(told).to_contain_text("q(love) · k(I)")
    cell(tab, "scores", 2, 1).hover()
    expect(cell(tab, "query", 2, 0)).to_have_class(re.compile(r"\blit\b"))
    expect(cell(tab, "key", 0, 1)).to_have_class(re.compile(r"\blit\b"))
    expect(cell(tab, "query", 1, 0)).not_to_have_class(re.compile(r"\blit\b"))

    # the slider over the learning stays in sight above the numbers
    tab.goto("by-hand?stage=projections")
    step = tab.main.get_by_test_id("stSlider").filter(has_text="Training step")
    weights = tab.main.locator(".st-key-hand-overview figure").nth(3)
    expect(weights).to_contain_text("Weights")
    expect(step).to_be_in_viewport()
    expect(weights).to_be_in_viewport(ratio=1)
    last = cell(tab, "output", 2, 0)
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    expect(step).to_be_in_viewport()

    # a shared link opens the same words and numbers
    tab.goto("by-hand?words=old+tree&numbers-one=2&vectors=1,2;0.5,-1&mask=Causal")
    expect(cell(tab, "query", 1, 1)).to_have_text("−1.00")
    expect(cell(tab, "weights", 0, 1)).to_have_text("0.00")
    tab.main.get_by_text("Words, vectors, mask and scale").click()
    words = tab.main.get_by_role("textbox", name="Your words")
    words.fill("old")
    words.press("Enter")
    expect(tab.main.get_by_role("alert")).to_contain_text("Type 2 to 6 words")
    expect(words).to_have_value("old")
    words.fill("old green tree")
    words.press("Enter")
    expect(cell(tab, "query", 2, 1)).to_have_text("−1.00")
    other = open_tab(tab.page.url.removeprefix(f"{tab.url}/"))
    expect(cell(other, "query", 2, 1)).to_have_text("−1.00")


def test_tensors_show_a_famous_error_and_a_product(open_tab: OpenTab) -> None:
    tab = open_tab("tensors")
    facts = tab.main.locator(".sheet .facts")
    expect(facts.nth(1)).to_contain_text("shares memory with x")
    tab.button("View of a transposed tensor").click()
    expect(tab.main.get_by_role("alert")).to_contain_text("is not contiguous")
    expect(tab.main.get_by_text("RuntimeError: view size is not compatible")).to_be_visible()
    tab.pick("Operation", "reshape")
    expect(tab.main.get_by_role("alert").filter(has_text="refuses")).to_have_count(0)
    expect(facts.nth(1)).to_contain_text("shape (2, 6)")

    # a product is written out where it is clicked
    tab.goto("tensors?op=matmul")
    cell(tab, "y", 1, 0).click()
    told = tab.main.locator(".sheet .arithmetic")
    expect(told).to_have_text("y[1][0] = 3 × 0 + 4 × 2 + 5 × 4 = 28")
    expect(tab.main.locator(".sheet .used")).to_have_count(6)
