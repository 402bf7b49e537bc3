"""One whole sweep in the browser: begun, watched, stopped, gone on with, and given more trials."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser


def number(tab: Tab, label: str, value: int, within: Locator | None = None) -> None:
    field = (within or tab.main).get_by_role("spinbutton", name=label, exact=True)
    field.fill(str(value))
    field.press("Enter")
    tab.settle()


def test_a_sweep_is_begun_stopped_gone_on_with_and_given_more_trials(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab("sweeps")
    choices = tab.open_choices()
    choices.get_by_role("radio", name="Random").click()
    tab.settle()
    number(tab, "Steps per run", 200, choices)
    number(tab, "Max. runs", 2, choices)
    tab.close_choices()
    start = tab.main.get_by_role("button", name="Start sweep")
    expect(start).to_be_enabled()
    start.click()
    heads = tab.main.get_by_text(re.compile(r"\d of up to \d runs"))
    head = heads.first  # while the page is drawn anew, the one before it still stands there
    badge = tab.main.locator(".stMarkdownBadge")
    expect(badge).to_contain_text("running")
    expect(head).to_have_text("1 of up to 2 runs")
    expect(tab.main.get_by_test_id("stDataFrame")).to_be_visible()
    tab.main.get_by_role("button", name="Stop sweep").click()
    expect(badge).to_contain_text("stopped")
    go_on = tab.main.get_by_role("button", name="Resume")
    expect(go_on).to_be_visible()
    tab.reload()
    go_on.click()
    expect(badge).to_contain_text("finished")
    expect(head).to_have_text("2 of up to 2 runs")
    expect(tab.main.get_by_text(re.compile(r"Best: trial \d"))).to_be_visible()
    expect(tab.main.get_by_text("Each line is a trial")).to_be_visible()
    tab.main.get_by_text("Change ranges or add trials").click()
    change = tab.main.get_by_test_id("stExpander")
    number(tab, "Max. runs", 3, change)
    change.get_by_role("button", name="Apply changes").click()
    expect(head).to_have_text("3 of up to 3 runs")
    expect(badge).to_contain_text("finished")
    expect(heads).to_have_count(1)
    runs = server.store.list()
    mine = [run for run in runs if not run.meta.recorded]
    assert [run.status.state for run in mine] == ["finished"] * 3
