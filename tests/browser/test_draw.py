"""A digit is drawn with the mouse: read at the stroke, looked at head by head, kept in the link."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser


def test_a_drawing_is_read_looked_at_and_found_again_by_its_address(open_tab: OpenTab) -> None:
    tab = open_tab("try?view=draw")
    read = tab.main.locator(".lab .highest .digit")
    said = tab.main.locator(".lab .said")
    expect(read).to_have_text("3")
    expect(said).to_have_text(re.compile("a 3"))
    tab.draw_a_one(tab.main.locator(".lab .board canvas"))
    expect(read).to_have_text("1")
    expect(tab.main.locator(".lab .seen .small")).to_contain_text("as in MNIST")
    expect(tab.page).to_have_url(re.compile("digit=picture-"))
    tab.main.get_by_role("button", name="I meant a 8").click()
    expect(said).to_have_text(re.compile("^Reads a 1, (never|not) a 8"))
    head = tab.main.get_by_role("button", name=re.compile("^Layer 2, head 3:"))
    head.click()
    expect(head).to_have_attribute("aria-pressed", "true")
    expect(tab.main.locator(".lab .large .small")).to_contain_text("Layer 2, head 3")
    labels = "nodes => nodes.map((node) => node.getAttribute('aria-label')).join()"
    heads = tab.main.locator(".lab .grid button")
    looked = heads.evaluate_all(labels)
    tab.main.get_by_role("slider", name="Weights of step").press("Home")
    expect(tab.main.locator(".lab .at")).to_have_text(re.compile("^Step 0:"))
    assert heads.evaluate_all(labels) != looked

    # its address opens it, from where it is taken back, and a sample is shown by the keyboard
    tab.reload()
    expect(read).to_have_text("1")
    tab.main.get_by_role("button", name="Undo").click()
    expect(said).to_have_text(re.compile("^Draw a digit"))
    tab.main.get_by_role("button", name="Show a 8").focus()
    tab.page.keyboard.press("Enter")
    expect(read).to_have_text("8")
