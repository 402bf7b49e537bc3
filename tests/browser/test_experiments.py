"""An experiment that teaches, whole: opened cold, trained by one press, drawn and concluded."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tfm_core.inspect.experiments import DEMONSTRATIONS

pytestmark = pytest.mark.browser

FIGURE = "experiment-curves"


def test_a_mistake_is_chosen_trained_and_told_from_the_right_way(
    open_tab: OpenTab, server: AppServer
) -> None:
    one = DEMONSTRATIONS["mask-on-the-wrong-axis"]
    tab = open_tab("experiments")
    tab.main.get_by_role("combobox", name="Experiment").click()
    tab.page.get_by_role("option", name=str(one.title)).click()
    expect(tab.page).to_have_url(re.compile(f"experiment={one.name}"))
    tab.main.get_by_role("button", name="Train 1 run").click()  # the right way is recorded
    expect(tab.main.get_by_role("button", name="Train 1 run")).to_have_count(0)
    tab.settle()
    tab.main.get_by_role("button", name="Show the answer").click()
    tab.await_plotly(FIGURE, "node._fullData.filter(d => d.showlegend).length === 2")
    expect(tab.main.get_by_text("Shown:")).to_be_visible()
    expect(tab.main.get_by_text("It learned to copy the answer")).to_be_visible()
    (run,) = [run for run in server.store.list() if run.labels.group == one.title]
    assert run.experiment == one.experiment(one.arms[1])
