"""Parameters: the table, its total to take away, and figures that need all of plotly."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

LOADED = """() => performance.getEntriesByType('resource').map(({ name }) => name.split('/').at(-1))
    .filter((name) => name.startsWith('plotly') && name.endsWith('.js'))"""


def shown(tab: Tab, words: str) -> None:
    """Wait until the line below the table says so."""
    expect(tab.main.get_by_text(re.compile(rf"^Shown: {re.escape(words)}"))).to_be_visible()


def total_of(tab: Tab, path: Path) -> int:
    with tab.page.expect_download() as found:
        tab.button("Download CSV").click()
    found.value.save_as(path)
    with path.open(encoding="utf-8") as file:
        return sum(int(row["parameters"]) for row in csv.DictReader(file))


def test_the_table_is_searched_unfolded_and_taken_away(open_tab: OpenTab, tmp_path: Path) -> None:
    tab = open_tab("parameters?show=gpt2-xl")
    shown(tab, "1,557,611,200 of 1,557,611,200")
    assert total_of(tab, tmp_path / "all.csv") == 1_557_611_200
    search = tab.main.get_by_role("textbox", name="Search")
    search.fill("feed_forward.up")
    search.press("Enter")
    shown(tab, f"{48 * (1600 * 6400 + 6400):,} of 1,557,611,200")
    tab.main.get_by_text("Fold equal blocks").click()
    expect(tab.main.locator("table[role=grid]")).to_have_attribute("aria-rowcount", str(1 + 48))
    assert total_of(tab, tmp_path / "some.csv") == 48 * (1600 * 6400 + 6400)
    assert len((tmp_path / "some.csv").read_text().splitlines()) == 1 + 48
    search.fill("nothing like it")
    search.press("Enter")
    expect(tab.main.get_by_text("No module has “nothing like it” in its name.")).to_be_visible()


def test_all_of_plotly_comes_where_its_small_bundle_does_not_do(open_tab: OpenTab) -> None:
    tab = open_tab("positions")
    tab.await_plotly("positions-wavelengths", "node._fullData.length > 0")
    assert tab.page.evaluate(LOADED) == ["plotly-cartesian.min.js"]
    tab.go_to("Understand", "Parameters")
    tab.await_plotly("parameters-treemap", "node._fullData[0].type === 'treemap'")
    assert tab.page.evaluate(LOADED) == ["plotly-cartesian.min.js", "plotly.min.js"]
    # the scores grow with the square of the length
    tab.main.get_by_role("tab", name="Compute and memory").click()
    curve = "node._fullData.find(line => line.name === 'scores')"
    lengths, scores = (tab.plotly("costs-growth", f"[...{curve}.{axis}]") for axis in "xy")
    assert scores[1] / scores[0] == pytest.approx((lengths[1] / lengths[0]) ** 2)
    tab.go_to("Understand", "Positions")
    tab.await_plotly("positions-wavelengths", "node._fullData.length > 0")
