"""Speed and one training step in a real browser: measured while one looks, stepped and undone."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

STEP = "training-step?run=recorded-korean&weights=last&stage="


def test_comparisons_are_measured_and_stopped(open_tab: OpenTab) -> None:
    tab = open_tab(f"speed?compare={quote('Loading a batch')}")
    tab.button("Measure").click()
    expect(tab.main.get_by_text("Do all ways")).to_be_visible()
    tab.main.get_by_role("button", name="Show the answer").click()
    expect(tab.main.get_by_text("Which one is fastest?")).to_be_visible()
    tab.main.get_by_role("button", name="Show the answer").click()
    expect(tab.main.get_by_text("3 · When not to use it")).to_be_visible()
    expect(tab.main.get_by_text("the same, bit for bit")).to_be_visible()
    assert tab.plotly("speed-times-0", "node._fullData[0].x[0] > node._fullData[0].x[1]")
    expect(tab.button("Measure again")).to_be_enabled()
    with tab.page.expect_download() as download:
        tab.button("Every round, as CSV").click()
    assert download.value.suggested_filename == "speed.csv"

    # a measurement stops when asked
    tab.goto(f"speed?compare={quote('Sequence length')}")
    tab.button("Measure").click()
    tab.button("Stop").click()
    expect(tab.main.get_by_text("Stopped by you.")).to_be_visible()
    expect(tab.button("Measure")).to_be_enabled()


def test_a_training_step_is_taken_undone_and_its_graph_opened(open_tab: OpenTab) -> None:
    tab = open_tab(STEP + "after")
    expect(tab.main.get_by_text("step 1,001")).to_be_visible()
    tab.button("Take this step").click()
    expect(tab.main.get_by_text("step 1,002")).to_be_visible()
    assert tab.plotly("training-step-history", "node._fullData.length") == 2
    tab.button("Undo").click()
    expect(tab.main.get_by_text("step 1,001")).to_be_visible()

    # a part of the graph is opened
    tab.goto(STEP + "backward")
    nodes = tab.main.locator("[data-testid=stGraphVizChart] g.node")
    expect(nodes.first).to_be_visible()
    closed = nodes.count()
    tab.pick(re.compile("^Open"), "encoder.layers.0")
    expect(nodes.filter(has_text="encoder.layers.0.self_attention").first).to_be_visible()
    assert nodes.count() > closed
