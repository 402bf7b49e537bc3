"""Playing on Train: sliders restart a training or turn it while it runs."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG
from tests.browser.tab import link_of

pytestmark = pytest.mark.browser


def test_a_slider_restarts_a_training_another_turns_it_and_a_twin_branches(
    open_tab: OpenTab, server
) -> None:
    tab = open_tab(link_of(LONG), viewport={"width": 1280, "height": 720})
    expect(tab.page.get_by_role("application")).to_be_in_viewport()
    tab.button("Start").click()
    tab.await_step(1)
    first = tab.run_id

    width = tab.page.get_by_role("slider", name="d_ff")
    width.press("ArrowRight")
    expect(tab.page).not_to_have_url(re.compile(first))
    tab.await_step(1)
    second = tab.run_id
    assert {run.id for run in server.store.list()} >= {first, second}
    (new,) = server.active()
    assert new.id == second
    assert new.experiment.model.d_ff > server.store.get(first).experiment.model.d_ff

    tab.page.get_by_role("slider", name="Learning rate").press("ArrowLeft")
    branch = tab.main.get_by_role("button", name=re.compile("Branch here"))
    expect(branch).to_be_visible()
    (turn,) = new.curves().turns
    assert turn.value < new.experiment.training.learning_rate
    step = tab.await_step(turn.step + 1)
    assert step > turn.step
    branch.click()
    expect(tab.title).to_have_text(re.compile("Compare"))
    expect(tab.page).to_have_url(re.compile(f"runs={second}(,|%2C)"))
