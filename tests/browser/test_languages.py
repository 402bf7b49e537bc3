"""A language is switched at once, on all that stands on a page, and goes along."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.untranslated import LISTEN, untranslated
from tests.pages import pseudo

pytestmark = pytest.mark.browser


def test_a_language_is_switched_at_once_and_goes_along_to_pages_links_and_visits(
    open_tab: OpenTab,
) -> None:
    tab = open_tab("train?run=recorded-korean", script=LISTEN)
    expect(tab.main.locator(".stage .head").first).to_be_visible()
    tab.open_menu().get_by_role("combobox", name="Language").select_option(pseudo.LANGUAGE)
    expect(tab.main.locator(".stage .head .title").first).to_contain_text("⟦")
    expect(tab.page.locator("html")).to_have_attribute("lang", pseudo.LANGUAGE)
    tab.page.wait_for_url(f"**lang={pseudo.LANGUAGE}*")
    tab.settle()
    tab.page.evaluate("window.drawnTexts.clear()")
    tab.page.set_viewport_size({"width": 1200, "height": 720})  # draws all canvases again
    tab.await_js("() => [...window.drawnTexts].some((text) => text.includes('⟦'))")
    assert untranslated(tab.page, "train") == []

    # to another page, and back: what a page itself writes to its address makes no entry
    tab.go_to("Look inside")
    expect(tab.title).to_contain_text("⟦Walk through")
    tab.page.wait_for_url(f"**lang={pseudo.LANGUAGE}*")
    tab.settle()
    tab.page.go_back()
    expect(tab.main.locator(".stage .head .title").first).to_contain_text("⟦")

    # to another visit: the browser remembers
    tab.goto("masks?mask=causal")
    expect(tab.title).to_have_text("⟦Masks··⟧")
    expect(tab.page).to_have_title(re.compile("^⟦Masks··⟧ · ⟦Watch a Transformer learn"))
    expect(tab.main.get_by_role("radio", checked=True).first).to_contain_text("⟦Causal")
    tab.strip.get_by_role("button", name="⟦Menu·⟧").click()
    tab.page.get_by_role("combobox", name="⟦Language··⟧").select_option("en")
    expect(tab.title).to_have_text("Masks")
    tab.reload()
    expect(tab.title).to_have_text("Masks")
    expect(tab.page).to_have_title("Masks · Watch a Transformer learn")
