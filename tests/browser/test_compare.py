"""A comparison of runs while one of them trains: read together, zoomed together, moving on."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG, SHORT
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP, link_of
from tests.pages.made_runs import made_run
from tfm_core.plots.training.comparison import MAX_HOVERED

pytestmark = pytest.mark.browser

FIGURE = "compare-curves"
MANY = MAX_HOVERED + 1
RANGE = "[...node._fullLayout.xaxis.range]"


def test_two_recorded_runs_are_read_together_in_both_panels(open_tab: OpenTab) -> None:
    tab = open_tab("compare?runs=recorded-one-head,recorded-many-heads&smooth=1")
    tab.await_plotly(FIGURE, "node._fullData.length === 4")
    tab.figure(FIGURE).scroll_into_view_if_needed()
    plot = tab.figure(FIGURE).locator(".nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    plot.hover(position={"x": 0.5 * box["width"], "y": 0.5 * box["height"]})
    tab.await_plotly(FIGURE, "(node._hoverdata ?? []).length >= 4")
    assert tab.plotly(FIGURE, "new Set(node._hoverdata.map(p => p.yaxis._id)).size") == 2


def test_zoom_and_node_stay_while_a_compared_run_trains(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(LONG))
    tab.button("Start").click()
    tab.await_plotly("loss", f"{LAST_STEP} > 1")
    tab.goto(f"compare?runs={tab.run_id},recorded-many-heads&smooth=1")
    longest = "Math.max(...node._fullData.filter(d => d.line.dash === 'solid')[0].x)"
    tab.await_plotly(FIGURE, f"{longest} > 1")
    tab.plotly(FIGURE, "node.mark = 'the same node'")
    tab.plotly(FIGURE, "void window.Plotly.relayout(node, {'xaxis.range': [0, 50]})")
    tab.await_plotly(FIGURE, f"{RANGE}[1] === 50")
    for _update in range(2):
        tab.await_plotly(FIGURE, f"{longest} > arg", tab.plotly(FIGURE, longest))
    assert tab.plotly(FIGURE, RANGE) == [0, 50]
    assert tab.plotly(FIGURE, "node.mark") == "the same node"


def test_of_many_runs_the_nearest_is_read_and_the_figure_is_saved_as_any_other(
    open_tab: OpenTab, server: AppServer
) -> None:
    made = [made_run(server.store, experiment=SHORT.replace(seed=n)) for n in range(MANY)]
    ids = ",".join(run.id for run in made)
    tab = open_tab(f"compare?runs={ids}&metrics=loss&bands=false")
    figure = tab.figure(FIGURE)
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
