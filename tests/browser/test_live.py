"""A run is steered and watched from the page, and goes on whatever becomes of the page."""

import re
import signal
from typing import Any

import psutil
import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.axe import expect_no_violations
from tests.browser.conftest import DESKTOP, OpenTab
from tests.browser.experiments import LONG, SHORT
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP, Tab, link_of
from tests.runs.waiting import wait_until
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control
from tfm_core.runs.run import Run
from tfm_core.training.events import Event

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
RANGES = "[...node._fullLayout.xaxis.range, ...node._fullLayout.yaxis.range]"
HIDDEN = "node._fullData.some(line => line.visible === 'legendonly')"
LAST_X = "Math.max(...node._fullData.flatMap(line => [...(line.x ?? [])]))"


class LongLine:
    """What lies between a page and its server: what a page's timers ask for comes late."""

    def __init__(self, page: Page) -> None:
        self._asked: dict[str, Any] = {}
        self._opened = ""
        self.came_late = 0
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def ask(said: Any) -> None:
            message = BackMsg.FromString(said).rerun_script
            if message.is_auto_rerun:
                self._asked[message.fragment_id] = said
            server.send(said)

        def answer(said: Any) -> None:
            route.send(said)
            message = ForwardMsg.FromString(said)
            if message.WhichOneof("type") != "new_session":
                return
            opened = message.new_session.page_script_hash
            if opened != self._opened:  # its script has just begun
                self._opened = opened
                for late in self._asked.values():
                    server.send(late)
                    self.came_late += 1
                self._asked.clear()

        route.on_message(ask)
        server.on_message(answer)


def start(open_tab: OpenTab) -> Tab:
    tab = open_tab(link_of(LONG))
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


def zoom(tab: Tab) -> None:
    """Draw a box over the middle of the curve of the loss."""
    plot = tab.figure("loss").locator(".nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    corners = [{"x": at * box["width"], "y": at * box["height"]} for at in (0.2, 0.4, 0.6, 0.75)]
    plot.hover(position=corners[0])
    tab.page.mouse.down()
    for corner in corners[1:]:
        # plotly puts a cover over the page while it is dragged over
        plot.hover(position=corner, force=True)
    tab.page.mouse.up()


def test_figures_keep_what_a_reader_chose_while_points_arrive(open_tab: OpenTab) -> None:
    tab = start(open_tab)
    tab.await_plotly("loss", f"{LAST_STEP} > 1")
    whole = tab.plotly("loss", RANGES)
    zoom(tab)
    tab.await_plotly("loss", f"String({RANGES}) !== String(arg)", whole)
    tab.plotly("loss", "node.mark = 'the same node'")
    zoomed = tab.plotly("loss", RANGES)
    tab.figure("loss").locator(".legendtoggle").first.click()
    tab.await_plotly("loss", HIDDEN)
    for _update in range(3):
        tab.await_plotly("loss", f"{LAST_X} > arg", tab.plotly("loss", LAST_X))
    assert tab.plotly("loss", RANGES) == zoomed
    assert tab.plotly("loss", "node.mark") == "the same node"
    assert tab.plotly("loss", HIDDEN)

    # the stage gets new snapshots, and stays where it was scrubbed to
    slider = tab.main.locator(".stage").get_by_role("slider", name="Training step")
    follow = tab.main.locator(".stage").get_by_role("button", name="Follow the training")

    def await_snapshots(least: int) -> int:
        tab.page.wait_for_function(
            "([one, least]) => Number(one.dataset.snapshots) >= least",
            arg=[slider.element_handle(), least],
        )
        return int(slider.get_attribute("data-snapshots") or 0)

    n = await_snapshots(2)
    expect(follow).to_be_hidden()
    slider.press("Home")
    expect(follow).to_be_visible()
    await_snapshots(n + 1)
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^step 0\."))
    tab.page.set_viewport_size(PHONE)
    expect(follow).to_be_in_viewport(ratio=1)
    follow.click()
    expect(follow).to_be_hidden()
    expect(slider).not_to_have_attribute("aria-valuetext", re.compile(r"^step 0\."))

    # a comparison with a run that trains keeps its zoom too
    tab.page.set_viewport_size(DESKTOP)
    figure = "compare-curves"
    tab.goto(f"compare?runs={tab.run_id},recorded-many-heads&smooth=1")
    longest = "Math.max(...node._fullData.filter(line => line.line.dash === 'solid')[0].x)"
    tab.await_plotly(figure, f"{longest} > 1")
    tab.plotly(figure, "node.mark = 'the same node'")
    tab.plotly(figure, "void window.Plotly.relayout(node, {'xaxis.range': [0, 50]})")
    tab.await_plotly(figure, "node._fullLayout.xaxis.range[1] === 50")
    for _update in range(2):
        tab.await_plotly(figure, f"{longest} > arg", tab.plotly(figure, longest))
    assert tab.plotly(figure, "[...node._fullLayout.xaxis.range]") == [0, 50]
    assert tab.plotly(figure, "node.mark") == "the same node"


def test_a_run_goes_on_through_a_reload_a_page_change_and_a_closed_tab(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = start(open_tab)
    run_id, before = tab.run_id, tab.step()
    tab.reload()
    assert tab.run_id == run_id
    assert tab.await_step(before + 1) > before
    tab.await_plotly("loss", f"{LAST_STEP} > arg", before)
    before = tab.step()

    # what comes while it trains can be used by all, wherever it is looked at
    expect_no_violations(tab.page)
    tab.strip.get_by_role("link", name="Look inside").click()
    expect(tab.main.locator(".heads canvas").first).to_be_visible()
    expect_no_violations(tab.page)
    tab.go_to("Watch", "Runs")
    expect(tab.title).to_have_text("Runs")
    expect(tab.state("Training")).to_be_visible()
    expect_no_violations(tab.page)
    tab.strip.get_by_role("link", name="Watch it learn").click()
    tab.await_step(before + 1)
    assert tab.run_id == run_id

    # two others watch it after its tab has closed
    before = tab.step()
    tab.page.context.close()
    far = open_tab(locale="en-US")  # which makes it a page that nobody else had
    line = LongLine(far.page)
    far.goto(f"train?run={run_id}")
    near = open_tab(f"train?run={run_id}")
    for one in (near, far):
        one.await_step(before + 1)

    # what a page asked for before it was left draws nothing over the next page
    far.await_draws(4)  # its timers ask
    n_late = line.came_late
    far.strip.get_by_role("combobox", name="Search pages and terms").fill("Positions")
    far.strip.get_by_role("option", name="Positions").first.click()  # which the server opens
    expect(far.title).to_have_text("Positions")
    far.settle()
    assert line.came_late > n_late
    far.await_draws(2)  # of what is in every page's frame: all that came late is over
    expect(far.title).to_have_text("Positions")

    # both see that one of them pauses it
    far.goto(f"train?run={run_id}")
    near.button("Pause").click()
    run = server.store.get(run_id)
    for one in (near, far):
        expect(one.state("Paused")).to_be_visible()
        assert one.await_step(run.status.step) == run.status.step > before


def test_a_run_is_paused_stepped_resumed_killed_and_resumed(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = start(open_tab)
    tab.button("Pause").click()
    expect(tab.state("Paused")).to_be_visible()
    paused = server.store.get(tab.run_id).status.step
    tab.await_step(paused)
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
    wait_until(lambda: run.status.step > saved, "the status tells of a later step")
    assert run.status.pid is not None
    psutil.Process(run.status.pid).send_signal(signal.SIGKILL)
    expect(tab.state("Interrupted")).to_be_visible()
    step = run.status.step
    assert saved < step < LONG.training.steps
    expect(tab.main.get_by_text(f"Interrupted at step {step:,}.").first).to_be_visible()
    tab.button("Resume").click()
    wait_until(lambda: run.curves().resumed, "the run goes on from its checkpoint")
    tab.await_step(step + 1)
    tab.await_plotly("loss", f"{LAST_STEP} > arg", step)


def test_a_stopped_run_resumes_to_its_end_and_is_looked_into(
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
    tab.await_no_timer()
    tab.reload()
    expect(card).to_contain_text("%")

    # its maps name the tokens on both axes
    tab.strip.get_by_role("link", name="Look inside").click()
    columns = tab.figure("attention-map").locator(".xtick text")
    rows = tab.figure("attention-map").locator(".ytick text")
    expect(columns.first).to_be_visible()
    source = tab.said("Source").inner_text()
    assert columns.all_text_contents() == [letter for letter in source if letter.strip()]
    assert rows.all_text_contents()[-1] == "<eos>"  # rows are named by what they write
    tab.await_no_timer()
