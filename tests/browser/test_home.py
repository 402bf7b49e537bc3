"""Home plays by itself, reads a digit at each stroke and at each time of a training, and trains."""

import re

import pytest
from playwright.sync_api import expect

from pages.app.navigation import ticks
from pages.app.navigation.page_table import PAGES
from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP, STEP
from tfm_core.choices.presets import PRESETS

pytestmark = pytest.mark.browser

ENDED = re.compile(r"^Step ([\d,]+) of \1$")


def test_heads_form_without_a_click_unless_no_motion_is_wanted(open_tab: OpenTab) -> None:
    tab = open_tab(reduced_motion="no-preference")
    where = tab.main.locator(".stage .where")
    expect(where).to_have_text(STEP)
    expect(where).not_to_have_text(where.inner_text())
    tab.main.get_by_role("slider", name="Training step").press("Home")
    expect(where).to_have_text(re.compile("^Step 0 of "))
    tab.main.get_by_role("button", name="Play the training").click()
    expect(where).not_to_have_text(re.compile("^Step 0 of "))

    # without motion it shows the end and a button that plays; what was done elsewhere is ticked
    masks = PAGES["masks"]
    cookie = {"name": ticks.COOKIE, "value": f"{masks.name}:act", "url": tab.url}
    tab.page.context.add_cookies([cookie])
    tab.page.emulate_media(reduced_motion="reduce")
    tab.reload()
    expect(where).to_have_text(ENDED)
    tab.main.get_by_role("button", name="Play the training").click()
    expect(where).not_to_have_text(ENDED)
    row = tab.main.locator(".st-key-page-map").get_by_role("link", name=masks.title)
    expect(row).to_contain_text("✓")
    tab.main.get_by_role("button", name="Reset").click()
    expect(row).not_to_contain_text("✓")
    tab.await_js("text => !document.cookie.includes(text)", f"{ticks.COOKIE}={masks.name}:")


def test_a_digit_is_read_at_each_stroke_and_one_press_trains(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab()
    read = tab.main.locator(".reader .highest .digit")
    said = tab.main.locator(".reader .said")
    expect(read).to_have_text("3")
    tab.draw_a_one(tab.main.locator(".reader canvas").first)
    expect(read).to_have_text("1")
    expect(said).to_have_text(re.compile(r"^Reads a 1\b"))
    share = tab.main.locator(".reader .bars li").nth(1)
    trained = share.inner_text()
    training = tab.main.get_by_role("slider", name="Weights of step")
    training.press("Home")
    expect(tab.main.locator(".reader .at")).to_have_text(re.compile("^Step 0:"))
    expect(share).not_to_have_text(trained, use_inner_text=True)
    tab.main.get_by_role("button", name="Show a 8").click()
    training.press("End")
    expect(read).to_have_text("8")
    tab.main.get_by_role("button", name="Clear", exact=True).click()
    expect(said).to_have_text("Draw a digit; the bars follow each stroke.")

    # the run that the button starts has its curves at the first step, and one step more at a press
    tab.main.get_by_role("button", name="Train it yourself").click()
    run = server.hold()
    expect(tab.title).to_have_text(PRESETS["translate"].label)
    assert run.meta.preset == "translate"
    assert tab.run_id == run.id
    for name in ("loss", "accuracy"):
        tab.await_plotly(name, f"{LAST_STEP} > 0")
    before = tab.plotly("loss", LAST_STEP)
    tab.button("Train one step").click()
    tab.await_plotly("loss", f"{LAST_STEP} > arg", before)
    tab.button("Stop").click()
    expect(tab.state("Stopped")).to_be_visible()
    assert run.status.state == "stopped"
