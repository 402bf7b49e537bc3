"""A twin of a run, from its page to the comparison of both."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import SHORT
from tests.browser.server import AppServer

pytestmark = pytest.mark.browser


def test_a_twin_is_chosen_trained_and_compared(open_tab: OpenTab, server: AppServer) -> None:
    run = server.store.create(SHORT, name="Mine", state="stopped")
    tab = open_tab(f"train?run={run.id}")
    tab.main.get_by_role("button", name="Compare", exact=True).click()
    tab.page.get_by_role("button", name="Repeat with a change").click()
    dialog = tab.page.get_by_role("dialog")
    setting = dialog.get_by_role("combobox", name="Settings to change")
    setting.fill("Seed")
    setting.press("Enter")
    number = dialog.get_by_role("spinbutton", name="Seed")
    number.fill("7")
    number.press("Enter")
    expect(dialog.get_by_text("Train a copy with seed 7")).to_be_visible()
    dialog.get_by_role("button", name="Train the twin").click()
    expect(tab.main.get_by_role("heading", name="Compare")).to_be_visible()
    (twin,) = [one for one in server.store.list() if one.meta.name == "Mine" and one.id != run.id]
    assert twin.experiment == SHORT.replace(seed=7)
    assert f"{run.id},{twin.id}" in tab.page.url.replace("%2C", ",")
