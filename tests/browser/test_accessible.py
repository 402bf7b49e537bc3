"""What a person gets who does not see the screen as it is: by ear, as tables, calm, dark."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG
from tests.browser.server import AppServer
from tests.browser.tab import PATIENCE, Tab, link_of
from tests.runs.waiting import wait_until
from tfm_core.inspect.progress.moments import moments

pytestmark = pytest.mark.browser

APART = 10_000  # milliseconds between two sentences, at least
RECORD = """region => {
    const note = (time) => {
        if (region.textContent) window.spoken.push([time, region.textContent]);
    };
    window.spoken = [];
    note(0); // nobody knows when that was said
    new MutationObserver(() => note(performance.now()))
        .observe(region, { childList: true, subtree: true });
}"""
FIGURES = {
    "train?run=recorded-korean": 2,
    "attention?run=recorded-korean": 1,
    "positions": 1,
    "knockouts": 1,
    "parameters?show=gpt2-small&versus=bert-base": 1,
}
"""Pages with at least so many figures: lines, maps, bars, a tree."""
ATTENTION = "attention?run=recorded-korean"
PICTURE = "all => all.map(one => one.toDataURL())"
SPACED = """{
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`* { letter-spacing: 0.12em !important; word-spacing: 0.16em !important;
        line-height: 1.5 !important } p { margin-bottom: 2em !important }`);
    document.adoptedStyleSheets = [sheet];
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (options) {
        const root = attach.call(this, options);
        root.adoptedStyleSheets = [sheet];
        return root;
    };
}"""
"""JavaScript: a reader's spacing of text (WCAG 2.2, 1.4.12), in components too."""
CUT = """all => all.filter(one => one.getClientRects().length
        && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
    .map(one => one.textContent)"""


def test_a_training_is_announced_by_its_first_step_and_its_end(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab(link_of(LONG))
    tab.main.get_by_role("button", name="Start").last.click()
    region = tab.main.locator(".stage").get_by_role("status")
    region.evaluate(RECORD)
    expect(region).not_to_be_empty()
    (run,) = server.active()
    run.request("stop")
    expect(region).to_contain_text("Stopped")
    spoken = tab.page.evaluate("window.spoken")
    happened = {one.sentence for one in moments(run, tuple(run.snapshot_steps()))}
    *before, (_time, last) = spoken
    assert before
    for _time, sentence in before:
        assert sentence in happened or re.match(r"Step [\d,]+ of 50,000$", sentence), sentence
    assert last not in happened
    times = [time for time, _sentence in spoken]
    assert all(after - before >= APART - 50 for before, after in itertools.pairwise(times))
    heard = [node for node in accessibility_tree(tab) if node["role"]["value"] == "status"]
    live = [
        {one["name"]: one["value"].get("value") for one in node["properties"]} for node in heard
    ]
    assert any(one.get("live") == "polite" for one in live)


def accessibility_tree(tab: Tab) -> list[Any]:
    """Return what Chromium tells a screen reader of the page."""
    session = tab.page.context.new_cdp_session(tab.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [node for node in nodes if "role" in node and not node["ignored"]]


def cells(table: Locator) -> list[list[str]]:
    return table.locator("tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


@pytest.mark.core(2)
@pytest.mark.parametrize("path", FIGURES)
def test_every_figure_has_a_computed_sentence_and_its_own_numbers_as_a_table(
    open_tab: OpenTab, path: str
) -> None:
    tab = open_tab(path)
    figures = tab.main.locator(".figure-box")
    expect(figures.nth(FIGURES[path] - 1).locator(".main-svg").first).to_be_attached()
    for figure in figures.all():
        drawn = figure.locator(".live-figure")
        expect(drawn).to_have_attribute("aria-label", re.compile(r"\d"))
        button = figure.get_by_role("button", name="Data as a table")
        button.focus()
        button.press("Enter")
        table = tab.page.locator("dialog.data-table")
        expect(table.get_by_role("table").first).to_be_visible()
        shown = {cell for one in table.locator("table").all() for row in cells(one) for cell in row}
        plotted = drawn.evaluate(
            """node => node._fullData
                .filter(({ hoverinfo, type }) => hoverinfo !== "skip" && type !== "image")
                .map(({ type, orientation, x, y, z, values }) =>
                    type === "heatmap" ? z[z.length - 1][0]
                    : type === "treemap" ? values[0] : (orientation === "h" ? x : y)[0])
                .filter(value => typeof value === "number" && !Number.isNaN(value))
                .map(value => Number.isInteger(value) ? value : Number(value.toPrecision(4)))
                .map(String)"""
        )
        assert plotted
        assert set(plotted) <= shown, path
        tab.page.keyboard.press("Escape")
        expect(table).to_have_count(0)
        expect(button).to_be_focused()


def test_the_loss_is_heard_only_when_asked_for_and_follows_the_arrow_keys(
    open_tab: OpenTab,
) -> None:
    tab = open_tab("train?run=recorded-korean")
    stage = tab.main.locator(".stage")
    scrubber = stage.get_by_role("slider", name="Training step")
    expect(scrubber).to_be_enabled()
    scrubber.press("ArrowLeft")
    expect(stage).not_to_have_attribute("data-heard", re.compile(""))
    stage.get_by_role("button", name="Sound").click()
    expect(stage).to_have_attribute("data-heard", re.compile(r"^\d+$"))
    before = int(stage.get_attribute("data-heard") or 0)
    scrubber.press("ArrowLeft")
    expect(stage).not_to_have_attribute("data-heard", str(before))
    assert int(stage.get_attribute("data-heard") or 0) < before
    stage.get_by_role("button", name="Data as a table").click()
    table = tab.page.get_by_role("dialog").get_by_role("table").first
    head, first, *_rows = cells(table)
    assert all(head)
    assert first[0] == "0"
    tab.page.keyboard.press("Escape")


@pytest.mark.core(1)
@pytest.mark.parametrize(
    ("path", "canvas"),
    [
        ("train?run=recorded-korean", ".stage .head canvas"),
        ("attention?run=recorded-korean", ".heads .grid canvas"),
        ("walk?run=recorded-korean", "canvas.model"),
    ],
)
def test_maps_and_canvases_follow_the_theme(open_tab: OpenTab, path: str, canvas: str) -> None:
    tab = open_tab(path, reduced_motion="reduce")
    fresh = open_tab(path, color_scheme="dark", reduced_motion="reduce")
    switched, wanted = (one.main.locator(canvas) for one in (tab, fresh))
    for maps in (switched, wanted):
        expect(maps.first).to_be_visible()
    tab.settle()
    light = switched.evaluate_all(PICTURE)
    tab.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    wait_until(
        lambda: switched.evaluate_all(PICTURE) == wanted.evaluate_all(PICTURE),
        "what was light looks as if it had always been dark",
    )
    assert switched.evaluate_all(PICTURE) != light


def test_spaced_text_cuts_no_name_of_a_head_or_run(open_tab: OpenTab) -> None:
    # the locale makes it a tab that no other test gets: the spacing stays
    tab = open_tab("train?run=recorded-korean", script=SPACED, locale="en-US")
    for path, names in (("", ".stage .maps .title"), (ATTENTION, ".heads .grid .what")):
        if path:
            tab.goto(path)
        for shown in (tab.main.locator(names), tab.main.locator(".st-key-current-run strong, h1")):
            expect(shown.first).not_to_be_empty()
            end = time.monotonic() + PATIENCE / 1000  # what is drawn may come before its room
            while cut := shown.evaluate_all(CUT):
                assert time.monotonic() < end, cut
                tab.page.wait_for_timeout(200)
