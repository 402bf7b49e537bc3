"""Before the Transformer: one press trains three models, another measures them."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tfm_core.inspect.attention import rnn_attention

pytestmark = pytest.mark.browser

LAST_LOOK = re.compile(r"Step 100, 6 sentences: [\d.]+ % on true words")
SOURCE = "JSON.stringify(node.layout.xaxis.ticktext)"


def test_one_press_trains_three_whose_curves_and_maps_stand_side_by_side(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab("before", viewport={"width": 1440, "height": 2400})  # nothing needs scrolling
    with tab.redrawn():
        tab.main.get_by_role("slider").press("Home")  # 100 steps
    tab.button("Train all three").click()
    expect(tab.main.locator(".stMarkdownBadge", has_text="Waiting").first).to_be_visible()
    sentence = tab.main.get_by_role("combobox", name=re.compile("Unseen sentence"))
    sentence.press("ArrowDown")
    options = tab.page.get_by_role("option")
    expect(options).to_have_count(6)
    for n in range(3):  # one after the other: each has its time
        expect(tab.main.get_by_text(LAST_LOOK).nth(n)).to_be_visible()
    ours = [run for run in server.store.list() if not run.meta.recorded]
    (contest,) = rnn_attention.contests(ours)
    assert tuple(contest.runs) == rnn_attention.RACERS
    tab.await_plotly("before-curves", "node._fullData.length === 3")
    for name in rnn_attention.RACERS:
        rows = tab.figure(f"before-map-{name}").locator(".ytick text")
        expect(rows.first).not_to_have_text("<bos>")  # a row is the token that is written
    expect(tab.main.locator(".stMarkdownBadge", has_text="Finished")).to_have_count(3)
    tab.await_rest(4000)
    words = tab.plotly("before-map-additive", SOURCE)
    expect(options).to_have_count(6)  # a list in use stays open, whatever ends meanwhile
    for key in ("ArrowDown", "Enter"):
        sentence.press(key)
    tab.await_plotly("before-map-additive", f"{SOURCE} !== arg", arg=words)


def test_times_are_measured_on_a_press_while_the_page_can_be_used(open_tab: OpenTab) -> None:
    tab = open_tab("before?view=length")
    tab.button("Measure now").click()
    expect(tab.main.get_by_text(re.compile("Measuring "))).to_be_visible()
    expect(tab.main.get_by_text(re.compile("From 8 to 128 tokens"))).to_be_visible()
    tab.await_plotly("before-times", "node._fullData.every(line => line.x.length === 5)")
    assert all(ratio > 0 for ratio in tab.plotly("before-ratios", "[...node._fullData[0].y]"))
