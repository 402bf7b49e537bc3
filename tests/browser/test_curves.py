"""A curve keeps its node, its zoom and its hidden lines while new points arrive."""

import pytest

from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG
from tests.browser.tab import LAST_STEP, link_of

pytestmark = pytest.mark.browser

RANGES = "[...node._fullLayout.xaxis.range, ...node._fullLayout.yaxis.range]"


def test_zoom_node_and_a_line_hidden_in_the_legend_survive_new_points(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(link_of(LONG))
    tab.button("Start").click()
    tab.await_plotly("loss", f"{LAST_STEP} > 1")
    whole = tab.plotly("loss", RANGES)
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
    tab.await_plotly("loss", f"String({RANGES}) !== String(arg)", whole)
    tab.plotly("loss", "node.mark = 'the same node'")
    zoomed = tab.plotly("loss", RANGES)
    for _update in range(3):
        tab.await_plotly("loss", f"{LAST_STEP} > arg", tab.plotly("loss", LAST_STEP))
    assert tab.plotly("loss", RANGES) == zoomed
    assert tab.plotly("loss", "node.mark") == "the same node"
    tab.figure("loss").locator(".legendtoggle").first.click()
    hidden = "node._fullData.some(line => line.visible === 'legendonly')"
    tab.await_plotly("loss", hidden)
    for _update in range(2):
        before = tab.plotly("loss", "Math.max(...node._fullData.flatMap(d => [...(d.x ?? [])]))")
        tab.await_plotly(
            "loss", "Math.max(...node._fullData.flatMap(d => [...(d.x ?? [])])) > arg", before
        )
    assert tab.plotly("loss", hidden)
