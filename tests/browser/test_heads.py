"""Heads in a real browser: the film plays, lines are pinned, a cell opens, pages work offline."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

KOREAN = "attention?run=recorded-korean"
LINES = f"{KOREAN}&view=lines&pin=q2"


def test_the_training_plays_in_the_browser_and_everything_moves_along(open_tab: OpenTab) -> None:
    tab = open_tab(LINES)
    heads = tab.main.locator(".heads")
    expect(heads.locator(".step")).to_have_text("Step 1,000")
    said = tab.main.locator(".lines .say").inner_text()
    heads.get_by_role("button", name="Play the training").click()
    expect(heads.locator(".step")).to_have_text("Step 8")
    expect(tab.main.locator(".lines .say")).not_to_have_text(said)
    expect(heads.locator(".answer")).to_contain_text("not right")
    expect(heads.locator(".step")).to_have_text("Step 1,000")
    expect(heads.locator(".answer")).to_contain_text("✓ right")
    expect(tab.main.locator(".lines .say")).to_have_text(said)


def test_playing_asks_the_server_for_nothing(open_tab: OpenTab) -> None:
    tab = open_tab(KOREAN)
    tab.main.locator(".heads").get_by_role("button", name="Play the training").click()
    expect(tab.main.locator(".heads .step")).to_have_text("Step 1")
    before = tab.drawn
    expect(tab.main.locator(".heads .step")).to_have_text("Step 126")
    assert tab.drawn == before


def test_where_the_film_is_paused_the_page_follows(open_tab: OpenTab) -> None:
    tab = open_tab(KOREAN)
    heads = tab.main.locator(".heads")
    heads.get_by_role("button", name="Play the training").click()
    expect(heads.locator(".step")).to_have_text("Step 4")
    heads.get_by_role("button", name="Pause").click()
    step = re.sub(r"\D", "", heads.locator(".step").inner_text())
    expect(tab.page).to_have_url(re.compile(rf"\bstep={step}\b"))
    expect(tab.main.get_by_text(f"Answer at step {step}", exact=True)).to_be_visible()


def test_a_token_is_pinned_with_the_keyboard_and_the_link_keeps_it(open_tab: OpenTab) -> None:
    tab = open_tab(LINES)
    token = tab.main.get_by_role("button", name="query 2: 선생님")
    expect(token).to_have_attribute("aria-pressed", "true")
    token.focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"\bpin=q3\b"))
    expect(tab.main.locator(".lines .say")).to_contain_text("Asks “이” (3)")
    tab.page.keyboard.press("Escape")
    expect(tab.page).not_to_have_url(re.compile(r"\bpin="))


def test_a_click_on_a_cell_opens_its_arithmetic(open_tab: OpenTab) -> None:
    tab = open_tab(KOREAN)
    plot = tab.figure("attention-map").locator(".nsewdrag").first
    plot.scroll_into_view_if_needed()
    plot.click()
    expect(tab.page).to_have_url(re.compile(r"\bcell=\d+%2C\d+"))
    expect(tab.main.get_by_text("Softmax")).to_be_visible()


def test_the_page_that_plays_works_without_a_server(open_tab: OpenTab, tmp_path) -> None:
    tab = open_tab(f"{KOREAN}&deeper=take")
    with tab.page.expect_download() as download:
        tab.button("Page that plays").click()
    path = tmp_path / "heads.html"
    download.value.save_as(path)
    tab.page.context.set_offline(True)
    page = tab.page.context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(path.as_uri())
    expect(page.locator(".heads canvas")).to_have_count(4)
    page.get_by_role("gridcell", name="Layer 1, Head 3").click()
    expect(page.locator("#which")).to_have_text("Layer 1, head 3")
    page.locator(".lines text[data-side=q]").nth(1).hover()
    expect(page.locator(".lines .say")).to_contain_text("Asks “선생님” (2)")
    page.get_by_role("slider").press("Home")
    expect(page.locator(".heads .step")).to_have_text("Step 0")
    assert errors == []
