"""Before the Transformer: three runs side by side while they train, and times measured here."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.inspect.constructed import constructed_run, write_state
from tfm_core.inspect.attention.rnn_attention import racers

pytestmark = pytest.mark.browser

SOURCE = "JSON.stringify(node.layout.xaxis.ticktext)"


def test_a_list_in_use_stays_open_while_runs_end_and_times_are_measured(
    open_tab: OpenTab, server: AppServer
) -> None:
    runs = {
        name: constructed_run(server.store, racer, state="running")
        for name, racer in racers("numbers", steps=100).items()
    }
    tab = open_tab("before", viewport={"width": 1440, "height": 2400})  # nothing needs scrolling
    expect(tab.main.locator(".stMarkdownBadge", has_text="Training")).to_have_count(len(runs))
    sentence = tab.main.get_by_role("combobox", name=re.compile("Unseen sentence"))
    sentence.press("ArrowDown")
    options = tab.page.get_by_role("option")
    expect(options).to_have_count(3)
    for run in runs.values():
        write_state(run, "finished", 100)
    expect(tab.main.locator(".stMarkdownBadge", has_text="Finished")).to_have_count(len(runs))
    for name in runs:
        rows = tab.figure(f"before-map-{name}").locator(".ytick text")
        expect(rows.first).not_to_have_text("<bos>")  # a row is the token that is written
    words = tab.plotly("before-map-additive", SOURCE)
    expect(options).to_have_count(3)
    for key in ("ArrowDown", "Enter"):
        sentence.press(key)
    tab.await_plotly("before-map-additive", f"{SOURCE} !== arg", arg=words)

    # times are measured at a press while the page can be used
    tab.choose("Time against length")
    tab.button("Measure now").click()
    expect(tab.main.get_by_text(re.compile("Measuring "))).to_be_visible()
    tab.button("Show the answer").click()  # how steps grow is asked first
    expect(tab.main.get_by_text(re.compile("From 8 to 128 tokens"))).to_be_visible()
    tab.await_plotly("before-times", "node._fullData.every(line => line.x.length === 5)")
    assert all(ratio > 0 for ratio in tab.plotly("before-ratios", "[...node._fullData[0].y]"))
