"""A run is steered and watched from the page, and goes on whatever becomes of the page."""

import signal

import psutil
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG, SHORT
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP, Tab, link_of
from tests.runs.waiting import wait_until
from tfm_core.config import Experiment
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control
from tfm_core.runs.run import Run
from tfm_core.training.events import Event

pytestmark = pytest.mark.browser


def start(open_tab: OpenTab, chosen: Experiment) -> Tab:
    tab = open_tab(link_of(chosen))
    tab.button("Start").click()
    tab.await_step(1)
    return tab


def stopped_at(step: int, run: Run) -> Run:
    """Train a run here up to a step."""
    control = Control(run.folder)

    def stop(event: Event) -> None:
        if event.step == step:
            control.stop_reason = "Enough."

    assert execute(run, control, stop).step == step
    return run


def test_a_run_goes_on_without_its_tab_and_two_others_can_watch_it(open_tab: OpenTab) -> None:
    first = start(open_tab, LONG)
    run_id, before = first.run_id, first.step()
    first.page.context.close()
    tabs = [open_tab(f"train?run={run_id}") for _person in range(2)]
    for tab in tabs:
        tab.await_step(before + 1)
    tabs[0].button("Pause").click()
    for tab in tabs:
        expect(tab.state("Paused")).to_be_visible()
        tab.await_draws(2)
    assert tabs[0].step() == tabs[1].step() > before


def test_a_run_is_paused_stepped_resumed_killed_and_resumed(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = start(open_tab, LONG)
    tab.button("Pause").click()
    expect(tab.state("Paused")).to_be_visible()
    tab.await_draws(2)
    paused = tab.step()
    tab.await_draws(4)
    assert tab.step() == paused
    for done in (1, 2):
        tab.button("Train one step").click()
        tab.await_step(paused + done)
        tab.await_draws(4)
        assert tab.step() == paused + done
    tab.button("Resume").click()
    expect(tab.state("Training")).to_be_visible()
    tab.await_step(paused + 10)

    run = server.store.get(tab.run_id)
    tab.button("Pause").click()
    expect(tab.state("Paused")).to_be_visible()
    saved = run.status.step
    tab.button("Resume").click()
    tab.await_step(saved + 1)
    assert run.status.pid is not None
    psutil.Process(run.status.pid).send_signal(signal.SIGKILL)
    expect(tab.state("Interrupted")).to_be_visible()
    step = run.status.step
    assert saved < step < LONG.training.steps
    expect(tab.main.get_by_text(f"Interrupted at step {step:,}.")).to_be_visible()
    tab.button("Resume").click()
    wait_until(lambda: run.curves().resumed, "the run goes on from its checkpoint")
    tab.await_step(step + 1)
    tab.await_plotly("loss", f"{LAST_STEP} > arg", step)


def test_a_reload_and_a_page_change_and_back_show_the_run_further_on(open_tab: OpenTab) -> None:
    tab = start(open_tab, LONG)
    run_id, before = tab.run_id, tab.step()
    tab.reload()
    assert tab.run_id == run_id
    assert tab.await_step(before + 1) > before
    tab.await_plotly("loss", f"{LAST_STEP} > arg", before)

    before = tab.step()
    tab.go_to("Watch", "Runs")
    expect(tab.main.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    tab.strip.get_by_role("link", name="Watch it learn").click()
    tab.await_step(before + 1)
    assert tab.run_id == run_id


def test_a_stopped_run_resumes_to_its_end_where_the_page_comes_to_rest(
    open_tab: OpenTab, server: AppServer
) -> None:
    run = stopped_at(23, server.store.create(SHORT))
    tab = open_tab(f"train?run={run.id}")
    expect(tab.state("Stopped")).to_be_visible()
    assert tab.step() == 23
    tab.button("Resume").click()
    expect(tab.state("Finished")).to_be_visible()
    assert tab.await_step(SHORT.training.steps) == SHORT.training.steps
    tab.await_plotly("loss", f"{LAST_STEP} === arg", SHORT.training.steps)
    card = tab.main.get_by_test_id("stMetric").filter(has_text="Test accuracy")
    expect(card).to_contain_text("%")
    tab.await_rest(3500)
    tab.reload()
    expect(card).to_contain_text("%")
    tab.await_rest(3500)
