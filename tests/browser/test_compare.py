"""A comparison of runs under the pointer, few and many, and its figure as a file."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import SHORT
from tests.browser.server import AppServer
from tests.pages.made_runs import made_run
from tfm_core.plots.training.comparison import MAX_HOVERED

pytestmark = pytest.mark.browser

FIGURE = "compare-curves"
MANY = MAX_HOVERED + 1


def test_few_runs_are_read_together_and_of_many_the_nearest(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab("compare?runs=recorded-one-head,recorded-many-heads&smooth=1")
    tab.await_plotly(FIGURE, "node._fullData.length === 4")
    tab.figure(FIGURE).scroll_into_view_if_needed()
    plot = tab.figure(FIGURE).locator(".nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    plot.hover(position={"x": 0.5 * box["width"], "y": 0.5 * box["height"]})
    tab.await_plotly(FIGURE, "(node._hoverdata ?? []).length >= 4")
    assert tab.plotly(FIGURE, "new Set(node._hoverdata.map(p => p.yaxis._id)).size") == 2

    # of many runs the nearest is read, and the figure is saved as any other
    made = [made_run(server.store, experiment=SHORT.replace(seed=n)) for n in range(MANY)]
    ids = ",".join(run.id for run in made)
    tab.goto(f"compare?runs={ids}&metrics=loss&bands=false")
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
