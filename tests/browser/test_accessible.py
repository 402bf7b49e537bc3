"""What a person gets who does not see the screen as it is: by ear, as tables, calm, dark."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.browser.tab import PATIENCE, Tab
from tests.pages.learned_runs import learned_run
from tests.pages.made_runs import with_worker
from tests.runs.waiting import wait_until
from tfm_core.runs.run import Run

pytestmark = pytest.mark.browser

APART = 10_000  # milliseconds between two sentences, at least
RECORD = """
window.spoken = [];
const attach = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    new MutationObserver(() => {
        const text = root.querySelector(".stage .spoken")?.textContent;
        if (text && text !== window.spoken.at(-1)?.[1])
            window.spoken.push([performance.now(), text]);
    }).observe(root, { childList: true, subtree: true });
    return root;
};
"""
PLOTTED = """node => node._fullData
    .filter(({ hoverinfo, type }) => hoverinfo !== "skip" && type !== "image")
    .map(({ type, orientation, x, y, z, values }) =>
        type === "heatmap" ? z[z.length - 1][0]
        : type === "treemap" ? values[0] : (orientation === "h" ? x : y)[0])
    .filter(value => typeof value === "number" && !Number.isNaN(value))
    .map(value => Number.isInteger(value) ? value : Number(value.toPrecision(4)))
    .map(String)"""
"""JavaScript: of lines, maps, bars and trees the first number each, as a table writes it."""
PICTURE = "all => all.map(one => one.toDataURL())"
WITHOUT_COLOUR = """all => all.map(one => {
    const pen = one.getContext("2d");
    return pen.getImageData(0, 0, one.width, one.height).data.filter((_, i) => i % 4 === 3).join();
})"""
"""JavaScript: the shapes of keys."""
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


@pytest.fixture
def training(server: AppServer) -> Iterator[Run]:
    """A run that the process of the test trains, as far as the server knows."""
    run = with_worker(learned_run(server.store, "translate"), "running")
    yield run
    with_worker(run, "stopped")


def test_a_training_is_announced_by_a_step_and_its_end_and_seldom(
    open_tab: OpenTab, training: Run
) -> None:
    tab = open_tab(locale="en-US")  # which makes it a page of its own
    tab.page.clock.install()  # time passes as ever until it is told to jump
    tab.run_before_pages(RECORD)
    tab.goto(f"train?run={training.id}")
    region = tab.main.locator(".stage").get_by_role("status")
    expect(region).to_have_text(re.compile(r"^Step 211 of [\d,]+$"))
    heard = [node for node in accessibility_tree(tab) if node["role"]["value"] == "status"]
    live = [
        {one["name"]: one["value"].get("value") for one in node["properties"]} for node in heard
    ]
    assert any(one.get("live") == "polite" for one in live)
    with_worker(training, "stopped")
    expect(tab.state("Stopped")).to_be_visible()
    tab.settle()
    tab.page.clock.fast_forward(APART)
    expect(region).to_have_text("Stopped at step 211.")
    (first, step), *_rest, (last, _end) = tab.page.evaluate("window.spoken")
    assert step.startswith("Step 211")
    assert last - first >= APART - 50


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


def expect_numbers_as_a_table(tab: Tab, least: int) -> None:
    """Open the table of each figure of the page, ``least`` at least: it has what is plotted."""
    figures = tab.main.locator(".figure-box")
    expect(figures.nth(least - 1).locator(".main-svg").first).to_be_attached()
    for figure in figures.all():
        drawn = figure.locator(".live-figure")
        told = [drawn.get_attribute(f"aria-{part}") or "" for part in ("label", "description")]
        assert re.search(r"\d", "".join(told))
        button = figure.get_by_role("button", name="Data as a table")
        button.focus()
        button.press("Enter")
        table = tab.page.locator("dialog.data-table")
        expect(table.get_by_role("table").first).to_be_visible()
        shown = {cell for one in table.locator("table").all() for row in cells(one) for cell in row}
        plotted = drawn.evaluate(PLOTTED)
        assert plotted
        assert set(plotted) <= shown
        with tab.page.expect_download() as saved:  # also where nothing hovers over the figure
            table.get_by_role("button", name="Save as PNG").click()
        assert saved.value.suggested_filename == "figure.png"
        tab.page.keyboard.press("Escape")
        expect(table).to_have_count(0)
        expect(button).to_be_focused()


def expect_follows_the_theme(tab: Tab, canvas: str) -> None:
    """Go from dark to light and back: each canvas is then what it was when opened."""
    pictures = tab.main.locator(canvas)
    expect(pictures.first).to_be_visible()
    tab.settle()
    dark = pictures.evaluate_all(PICTURE)
    tab.page.emulate_media(color_scheme="light")
    wait_until(lambda: pictures.evaluate_all(PICTURE) != dark, "it follows to the light")
    tab.page.emulate_media(color_scheme="dark")
    wait_until(lambda: pictures.evaluate_all(PICTURE) == dark, "it follows to the dark")


def expect_heard_when_asked_for(tab: Tab) -> None:
    """Switch the sound of the loss on, and go back a snapshot."""
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


def test_curves_are_read_as_tables_heard_and_seen_in_every_theme(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=recorded-korean", color_scheme="dark")
    expect_follows_the_theme(tab, ".stage .head canvas")
    expect_numbers_as_a_table(tab, 2)
    expect_heard_when_asked_for(tab)
    stage = tab.main.locator(".stage")
    stage.get_by_role("button", name="Data as a table").click()
    table = tab.page.get_by_role("dialog").get_by_role("table").first
    head, first, *_rows = cells(table)
    assert all(head)
    assert first[0] == "0"
    tab.page.keyboard.press("Escape")
    keys = stage.locator(".figure canvas").evaluate_all(WITHOUT_COLOUR)
    assert len(set(keys[:2])) == 2  # training and validation


def test_maps_are_read_as_tables_and_follow_the_theme(open_tab: OpenTab) -> None:
    tab = open_tab("attention?run=recorded-korean", color_scheme="dark")
    expect_follows_the_theme(tab, ".heads .grid canvas")
    expect_numbers_as_a_table(tab, 1)


@pytest.mark.wide
def test_bars_and_trees_are_read_as_tables_and_the_picture_follows_the_theme(
    open_tab: OpenTab,
) -> None:
    tab = open_tab("knockouts?run=recorded-korean&off=decoder.1.cross", color_scheme="dark")
    expect_numbers_as_a_table(tab, 1)
    tab.goto("parameters?show=gpt2-small&versus=bert-base")
    expect_numbers_as_a_table(tab, 1)
    tab.goto("walk?run=recorded-korean")
    expect_follows_the_theme(tab, "canvas.model")


@pytest.mark.core(1)
@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("train?run=recorded-korean", ".stage .maps .title"),
        ("attention?run=recorded-korean", ".heads .grid .what"),
    ],
)
def test_spaced_text_cuts_no_name_of_a_head_or_run(
    open_tab: OpenTab, path: str, names: str
) -> None:
    tab = open_tab()
    tab.run_before_pages(SPACED)
    tab.goto(path)
    with_a_name = tab.main.locator(names).filter(has_text=re.compile(r"\S"))  # roles have one
    for shown in (with_a_name, tab.main.locator(".st-key-head button p, h1")):
        expect(shown.first).not_to_be_empty()
        end = time.monotonic() + PATIENCE / 1000  # what is drawn may come before its room
        while cut := shown.evaluate_all(CUT):
            assert time.monotonic() < end, cut
            tab.page.wait_for_timeout(200)
