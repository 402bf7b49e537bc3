"""Home plays by itself, shows three answers whole, and trains."""

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
    tab.goto("challenges")
    row = tab.main.locator(".st-key-page-map").get_by_role("link", name=masks.title)
    expect(row).to_contain_text("✓")
    tab.main.get_by_role("button", name="Reset").click()
    expect(row).not_to_contain_text("✓")
    tab.await_js("text => !document.cookie.includes(text)", f"{ticks.COOKIE}={masks.name}:")


def test_one_press_trains_and_each_step_is_drawn(open_tab: OpenTab, server: AppServer) -> None:
    tab = open_tab()
    answers = tab.main.locator(".stage .rows .row")
    for n in range(3):  # three answers whole, and the next steps, without scrolling
        expect(answers.nth(n)).to_be_in_viewport(ratio=1)
    expect(tab.main.get_by_role("link", name="Draw a digit")).to_be_in_viewport(ratio=1)

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
