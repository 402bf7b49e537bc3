"""A run is steered and watched from the page, and goes on whatever becomes of the page."""

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.axe import expect_no_violations
from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP, Tab, link_of
from tests.pages.made_runs import made_run
from tests.runs.waiting import wait_until
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status

pytestmark = pytest.mark.browser

HAS_MNIST = (Path(os.environ.get("TFM_DATA_DIR", "")) / "MNIST" / "raw").is_dir()


class LongLine:
    """What lies between a page and its server: what a page's timers ask for comes late."""

    def __init__(self, page: Page) -> None:
        self.asked: dict[str, Any] = {}
        self._opened = ""
        self.came_late = 0
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def ask(said: Any) -> None:
            message = BackMsg.FromString(said).rerun_script
            if message.is_auto_rerun:
                self.asked[message.fragment_id] = said
            server.send(said)

        def answer(said: Any) -> None:
            route.send(said)
            message = ForwardMsg.FromString(said)
            if message.WhichOneof("type") != "new_session":
                return
            opened = message.new_session.page_script_hash
            if opened != self._opened:  # its script has just begun
                self._opened = opened
                for late in self.asked.values():
                    server.send(late)
                    self.came_late += 1
                self.asked.clear()

        route.on_message(ask)
        server.on_message(answer)


def test_a_run_is_steered_killed_and_outlives_its_page_and_its_tab(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab(link_of(LONG))
    tab.button("Start").click()
    tab.await_step(1)
    tab.await_plotly("loss", f"{LAST_STEP} > 0")
    run = server.store.get(tab.run_id)
    a_second_tab_sees_what_the_first_one_does(tab, run)

    # a kill is noticed and says where it was; resumed, it goes on from its checkpoint
    paused = run.status.step
    tab.button("Resume").click()
    wait_until(lambda: run.status.step > paused, "the status tells of a later step")
    assert run.status.pid is not None
    psutil.Process(run.status.pid).send_signal(signal.SIGKILL)
    expect(tab.state("Interrupted")).to_be_visible()
    step = run.status.step
    assert paused < step < LONG.training.steps
    expect(tab.main.get_by_text(f"Interrupted at step {step:,}.").first).to_be_visible()
    tab.button("Resume").click()
    wait_until(lambda: run.curves().resumed, "the run goes on from its checkpoint")
    tab.await_plotly("loss", f"{LAST_STEP} > arg", step)

    # also while another page is looked at, and without any, until it is stopped
    tab.go_to("Runs")
    expect(tab.title).to_have_text("Runs")
    expect(tab.state("Training")).to_be_visible()
    tab.go_to("Train")
    before, address = tab.await_step(step + 1), tab.page.url
    tab.page.goto("about:blank")
    wait_until(lambda: run.status.step > before, "it goes on while no page is open")
    tab.page.goto(address)
    tab.await_step(before + 1)
    assert tab.run_id == run.id
    tab.button("Stop").click()
    expect(tab.state("Stopped")).to_be_visible()
    assert tab.await_step(run.status.step) == run.status.step > before
    tab.await_no_timer()


def a_second_tab_sees_what_the_first_one_does(tab: Tab, run: Run) -> None:
    """Pause and step a run while another tab is open."""
    tab.button("Pause").click()
    expect(tab.state("Paused")).to_be_visible()
    paused = run.status.step
    other = Tab(tab.page.context.new_page(), tab.url)
    other.goto(f"train?run={run.id}")
    expect(other.state("Paused")).to_be_visible()
    for one in (tab, other):
        assert one.await_step(paused) == paused
    tab.button("Train one step").click()
    for one in (tab, other):
        one.await_step(paused + 1)
    other.await_draws(2)  # its timers ask
    assert tab.step() == other.step() == run.status.step == paused + 1
    assert other.went_wrong() == []
    other.page.close()


@pytest.fixture
def paused(server: AppServer) -> Iterator[Run]:
    """A run that pages look at again and again, though nothing trains."""
    run = made_run(server.store, state="paused")
    yield run
    write_status(run.folder, dataclasses.replace(run.status, state="stopped"))


def test_what_a_page_asked_for_before_it_was_left_draws_nothing_over_the_next(
    open_tab: OpenTab, paused: Run
) -> None:
    tab = open_tab("numbers", has_touch=False)  # a tab that nobody gets after this test
    line = LongLine(tab.page)
    tab.goto(f"train?run={paused.id}")
    expect(tab.state("Paused")).to_be_visible()
    while not line.asked:  # its timers ask
        tab.await_draws(1)
    n_late = line.came_late
    tab.strip.get_by_role("combobox", name="Search pages and terms").fill("Positions")
    tab.strip.get_by_role("option", name="Positions").first.click()  # which the server opens
    expect(tab.title).to_have_text("Positions")
    tab.settle()
    assert line.came_late > n_late
    tab.await_draws(2)  # of what is in every page's frame: all that came late is over
    expect(tab.title).to_have_text("Positions")


@pytest.mark.wide
def test_what_stands_there_while_a_run_trains_can_be_used_by_all(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(LONG))
    tab.button("Start").click()
    tab.await_plotly("loss", f"{LAST_STEP} > 0")
    expect_no_violations(tab.page)
    tab.go_to("Look inside", "Attention")
    expect(tab.main.locator(".heads canvas").first).to_be_visible()
    expect_no_violations(tab.page)
    tab.go_to("Runs")
    expect(tab.state("Training")).to_be_visible()
    expect_no_violations(tab.page)


@pytest.mark.wide
@pytest.mark.skipif(HAS_MNIST, reason="The full MNIST is in TFM_DATA_DIR.")
def test_a_run_whose_data_cannot_be_downloaded_says_so_and_is_kept(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(PRESETS["vit-mnist"].experiment))
    tab.button("Start").click()
    expect(tab.state("Failed")).to_be_visible()
    message = tab.main.get_by_test_id("stAlertContentError")
    expect(message).to_contain_text("could not be downloaded")
    expect(message).to_contain_text("choose the 5,000 MNIST digits")
    expect(tab.button("Resume")).to_be_enabled()
    tab.reload()
    expect(tab.state("Failed")).to_be_visible()
