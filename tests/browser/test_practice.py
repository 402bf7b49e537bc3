"""Good practice: a question marks a step as done, a press trains, its curves grow here."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP

pytestmark = pytest.mark.browser


def test_the_right_answer_marks_the_step_and_the_guided_run_is_watched(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab("practice")
    expect(tab.main.get_by_text("0 of 7 done")).to_be_visible()
    answers = tab.main.get_by_test_id("stRadio")
    answers.get_by_text("Test", exact=True).click()
    tab.button("Check").click()
    expect(tab.main.get_by_text("It can no longer test")).to_be_visible()
    answers.get_by_text("Validation", exact=True).click()
    tab.button("Check").click()
    expect(tab.main.get_by_text("1 of 7 done")).to_be_visible()

    # the guided run is watched where it was started
    tab.goto("practice?step=train")
    tab.main.get_by_role("button", name="Train the guided run").click()
    run = server.hold()
    tab.await_plotly("practice-plain-loss", f"{LAST_STEP} >= 1")
    expect(tab.state("Paused")).to_be_visible()
    before = tab.plotly("practice-plain-loss", LAST_STEP)
    run.request("step")
    tab.await_plotly("practice-plain-loss", f"{LAST_STEP} > arg", before)
    tab.reload()
    tab.await_plotly("practice-plain-accuracy", f"{LAST_STEP} >= 1")
    expect(tab.main.get_by_text("1 of 7 done")).to_be_visible()
