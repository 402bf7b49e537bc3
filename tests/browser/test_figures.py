"""Figures of runs: they keep what a reader chose while points arrive, few and many lines."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, OpenTab
from tests.browser.experiments import LONG, SHORT
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP, Tab, link_of
from tests.pages.made_runs import made_run
from tfm_core.plots.training.comparison import MAX_HOVERED

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
RANGES = "[...node._fullLayout.xaxis.range, ...node._fullLayout.yaxis.range]"
HIDDEN = "node._fullData.some(line => line.visible === 'legendonly')"
LAST_X = "Math.max(...node._fullData.flatMap(line => [...(line.x ?? [])]))"
COMPARED = "compare-curves"
LONGEST = "Math.max(...node._fullData.filter(line => line.line.dash === 'solid')[0].x)"
MANY = MAX_HOVERED + 1


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


def test_figures_keep_what_a_reader_chose_while_points_arrive(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab(link_of(LONG))
    tab.button("Start").click()
    tab.await_step(1)
    tab.await_plotly("loss", f"{LAST_STEP} > 1")
    whole = tab.plotly("loss", RANGES)
    zoom(tab)
    tab.await_plotly("loss", f"String({RANGES}) !== String(arg)", whole)
    tab.plotly("loss", "node.mark = 'the same node'")
    zoomed = tab.plotly("loss", RANGES)
    tab.figure("loss").locator(".legendtoggle").first.click()
    tab.await_plotly("loss", HIDDEN)
    tab.await_plotly("loss", f"{LAST_X} > arg", tab.plotly("loss", LAST_X))
    assert tab.plotly("loss", RANGES) == zoomed
    assert tab.plotly("loss", "node.mark") == "the same node"
    assert tab.plotly("loss", HIDDEN)
    stage_stays_where_it_was_scrubbed_to(tab)

    # a comparison with a run that trains keeps its zoom too, and is read in all panels at once
    tab.page.set_viewport_size(DESKTOP)
    tab.goto(f"compare?runs={tab.run_id},recorded-many-heads&smooth=1")
    tab.await_plotly(COMPARED, f"{LONGEST} > 1")
    tab.plotly(COMPARED, "node.mark = 'the same node'")
    tab.plotly(COMPARED, "void window.Plotly.relayout(node, {'xaxis.range': [0, 50]})")
    tab.await_plotly(COMPARED, "node._fullLayout.xaxis.range[1] === 50")
    tab.await_plotly(COMPARED, f"{LONGEST} > arg", tab.plotly(COMPARED, LONGEST))
    assert tab.plotly(COMPARED, "[...node._fullLayout.xaxis.range]") == [0, 50]
    assert tab.plotly(COMPARED, "node.mark") == "the same node"
    server.end_runs()
    tab.await_no_timer()
    tab.figure(COMPARED).scroll_into_view_if_needed()
    plot = tab.figure(COMPARED).locator(".nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    # near step 0, where both panels have points
    plot.hover(position={"x": 0.02 * box["width"], "y": 0.5 * box["height"]})
    tab.await_plotly(COMPARED, "(node._hoverdata ?? []).length >= 4")
    assert tab.plotly(COMPARED, "new Set(node._hoverdata.map(p => p.yaxis._id)).size") == 2


def stage_stays_where_it_was_scrubbed_to(tab: Tab) -> None:
    """Scrub the stage, which gets new snapshots, then let it follow again."""
    slider = tab.main.locator(".stage").get_by_role("slider", name="Training step")
    follow = tab.main.locator(".stage").get_by_role("button", name="Follow the training")

    def await_snapshots(least: int) -> int:
        tab.await_js(
            "([one, least]) => Number(one.dataset.snapshots) >= least",
            [slider.element_handle(), least],
        )
        return int(slider.get_attribute("data-snapshots") or 0)

    n = await_snapshots(2)
    expect(follow).to_be_hidden()
    slider.press("Home")
    expect(follow).to_be_visible()
    await_snapshots(n + 1)
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^step 0\."))
    tab.page.set_viewport_size(PHONE)
    expect(follow).to_be_in_viewport(ratio=0.98)
    follow.click()
    expect(follow).to_be_hidden()
    expect(slider).not_to_have_attribute("aria-valuetext", re.compile(r"^step 0\."))


def test_of_many_lines_the_nearest_is_read_and_they_are_saved(
    open_tab: OpenTab, server: AppServer
) -> None:
    made = [made_run(server.store, experiment=SHORT.replace(seed=n)) for n in range(MANY)]
    ids = ",".join(run.id for run in made)
    tab = open_tab(f"compare?runs={ids}&metrics=loss&bands=false")
    figure = tab.figure(COMPARED)
    expect(figure).to_have_attribute("data-lines", str(MANY))
    figure.scroll_into_view_if_needed()
    over = figure.locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    over.hover(position={"x": 0.5 * box["width"], "y": 0.8 * box["height"]})
    expect(figure.locator(".reads")).to_contain_text("training loss")
    tab.main.get_by_text("Log x").click()
    expect(figure).to_have_attribute("data-along", "step (log)")
    with tab.page.expect_download() as saved:
        figure.get_by_role("button", name="Save as SVG").click()
    assert saved.value.path().read_text(encoding="utf-8").count("js-line") >= MANY
