"""A sick rate is warned about and trained all the same; it is told while it trains, and cured."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import experiment
from tests.browser.tab import link_of

pytestmark = pytest.mark.browser

SICK = experiment(
    steps=3000,
    model={"d_model": 32, "d_ff": 32},
    task_settings={"size": 3, "n_train": 500, "n_validation": 50, "n_test": 50},
    learning_rate=10.0,
    validate_every=1000,
    snapshots=4,
)


def test_a_sick_run_is_cured_by_one_press(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(SICK))
    expect(tab.main.get_by_text("2,500 times the usual").first).to_be_visible()
    tab.button("Start").click()
    cure = tab.page.get_by_role("button", name="Start again: learning rate 0.004")
    expect(tab.main.get_by_text("It diverged at step")).to_be_visible()
    cure.click()
    expect(tab.main.get_by_text("from the start: learning rate 0.004")).to_be_visible()
    expect(tab.main.get_by_role("heading", name="Copy, cured")).to_be_visible()
    expect(tab.main.get_by_text(re.compile("Doctor: no problems found"))).to_be_visible()
    tab.button("Stop").click()
    expect(tab.main.get_by_text("Stopped by hand.")).to_be_visible()
    tab.page.get_by_role("button", name="Compare with the original").click()
    expect(tab.page.get_by_role("heading", name="Compare", exact=True)).to_be_visible()
    expect(tab.main.get_by_text("learning rate 0.004").first).to_be_visible()
