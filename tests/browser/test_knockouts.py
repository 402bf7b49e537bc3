"""Knock-outs in a real browser: a press on a head switches it off, and on again."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser


def test_a_press_on_a_head_switches_it_off_and_on_again(open_tab: OpenTab) -> None:
    tab = open_tab("knockouts?run=recorded-many-heads&off=none")
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
