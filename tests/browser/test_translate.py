"""The page on which a model writes: step, put a token in, undo; the link shows the same."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser


def test_a_token_is_put_in_and_taken_back_and_the_link_shows_it(open_tab: OpenTab) -> None:
    tab = open_tab("translate?run=recorded-korean&at=2&lang=en", locale="ko-KR")
    tokens, desk = tab.main.locator(".desk .written button"), tab.main.locator(".desk")
    expect(desk.locator(".say")).to_have_text(re.compile("^Token 2 of"))
    tab.main.get_by_role("button", name="Previous token").click()
    expect(desk.locator(".say")).to_have_text(re.compile("^Token 1 of"))
    expect(tab.page).to_have_url(re.compile("at=1"))
    expect(tokens.first.locator("span")).not_to_have_text("")
    was = tokens.first.locator("span").inner_text()
    desk.locator(".choice").nth(2).click()
    expect(desk.locator(".forced")).to_have_count(1)
    put = desk.locator(".forced span").inner_text()
    assert put != was
    expect(desk.get_by_text("Without your tokens:")).to_be_visible()
    expect(tab.page).to_have_url(re.compile("forced=1-"))
    tab.reload()
    expect(desk.locator(".forced span")).to_have_text(put)
    desk.get_by_role("button", name=f"Undo “{put}”").click()
    expect(desk.locator(".forced")).to_have_count(0)
    expect(tokens.first.locator("span")).to_have_text(was)
