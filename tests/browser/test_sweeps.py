"""A sweep in the browser: begun and stopped, with the run that it trains."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG
from tests.browser.server import AppServer
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser


def fill(tab: Tab, within: Locator, label: str, value: int) -> None:
    field = within.get_by_role("spinbutton", name=label, exact=True)
    field.fill(str(value))
    field.press("Enter")
    tab.settle()


def test_a_sweep_is_begun_and_stopped_with_its_run(open_tab: OpenTab, server: AppServer) -> None:
    tab = open_tab("sweeps")
    choices = tab.open_choices()
    choices.get_by_role("radio", name="Random").click()
    tab.settle()
    fill(tab, choices, "Steps per run", LONG.training.steps)
    fill(tab, choices, "Max. runs", 2)
    tab.close_choices()
    start = tab.main.get_by_role("button", name="Start sweep")
    expect(start).to_be_enabled()
    start.click()
    badge = tab.main.locator(".stMarkdownBadge")
    expect(badge).to_contain_text("running")
    expect(tab.main.get_by_text(re.compile("1 of up to 2 runs")).first).to_be_visible()
    expect(tab.main.get_by_test_id("stDataFrame")).to_be_visible()
    tab.main.get_by_role("button", name="Stop sweep").click()
    expect(badge).to_contain_text("stopped")
    expect(tab.main.get_by_role("button", name="Resume")).to_be_visible()
    (run,) = [run for run in server.store.list() if not run.meta.recorded]
    assert run.status.state == "stopped"
