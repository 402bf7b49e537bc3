"""Presenter mode: large type, one figure at a time, and keys that a clicker has."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from pages.components.presenter import KINDS, STEPS
from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab
from tfm_core.lessons import catalogue

pytestmark = pytest.mark.browser

LOW = {"width": 1280, "height": 720}
SMALL = """() => {
    const pen = document.createElement("canvas").getContext("2d");
    const high = (family, weight) => { // the line of a font, for each pixel of its size
        pen.font = `${weight} 100px ${family}`;
        const {fontBoundingBoxAscent: up, fontBoundingBoxDescent: down} = pen.measureText("x");
        return (up + down) / 100;
    };
    const texts = (root) => [...root.childNodes].flatMap((node) => {
        if (node.nodeType === Node.TEXT_NODE) return node.data.trim() ? [node] : [];
        if (node.nodeType !== Node.ELEMENT_NODE || /^(style|script|title)$/i.test(node.tagName))
            return [];
        return [...(node.shadowRoot ? texts(node.shadowRoot) : []), ...texts(node)];
    });
    const size = (text) => {
        const on = text.parentElement ?? text.parentNode.host;
        const {width, height} = on.getBoundingClientRect();
        if (!on.checkVisibility({visibilityProperty: true}) || width <= 1 || height <= 1)
            return Infinity;
        const style = getComputedStyle(on);
        if (on.ownerSVGElement) {
            const {a, b, c, d} = on.getScreenCTM();
            return parseFloat(style.fontSize) * Math.sqrt(Math.abs(a * d - b * c));
        }
        const range = document.createRange();
        range.selectNodeContents(text);
        const line = range.getClientRects()[0];
        if (style.writingMode !== "horizontal-tb")
            return line ? line.width / high(style.fontFamily, style.fontWeight) : Infinity;
        return line ? line.height / high(style.fontFamily, style.fontWeight) : Infinity;
    };
    const shown = [...document.querySelectorAll(".presented"),
        document.querySelector(".st-key-task-bar")];
    return shown.filter(Boolean).flatMap(texts)
        .map((text) => [text.data.trim(), size(text)]).filter(([, px]) => px < 17.5)
        .map(([words, px]) => `${words}: ${px.toFixed(1)}`);
}"""
"""JavaScript: the texts of what is presented that are smaller than 18 pixels, as drawn."""
FILLS = """() => {
    const box = document.querySelector(".presented")?.getBoundingClientRect();
    return box && box.width >= innerWidth - 1 && box.height >= innerHeight - 1;
}"""
CUT = """(stage) => [
    [".room", "scrollHeight", ".room"], [".row[aria-pressed=true]", "offsetHeight", ".rows"],
].map(([part, high, box]) =>
    stage.querySelector(part)[high] - stage.querySelector(box).clientHeight)
    .filter((more) => more > 1)"""
"""JavaScript: how many pixels of a training's maps and of the chosen answer are out of sight."""
PAPER = "(stage) => getComputedStyle(stage).getPropertyValue('--st-background-color')"
"""JavaScript: what the maps of a stage take for their background, as a canvas takes it."""
FIGURES = ", ".join(kind.css for kind in KINDS)
MAX_PRESSES = 60


def presented(tab: Tab) -> str:
    """Return which figure of the page fills the screen, as the buttons say it: ``1 / 3 · …``."""
    return tab.page.locator(".presenter .name").inner_text()


def begin(tab: Tab) -> None:
    expect(tab.page.locator("[data-presents]")).to_be_attached()
    tab.page.keyboard.press("p")
    expect(tab.page.locator(".presenter .name")).to_contain_text("1 / ")


def expect_large(tab: Tab) -> None:
    """Wait until all type of what is presented is large."""
    tab.await_js(f"() => ({SMALL})().length === 0")


def expect_large_figures(tab: Tab) -> None:
    """Go from the figure that is presented to the last; each fills the screen, in large type."""
    seen = set[str]()
    for _press in range(MAX_PRESSES):
        if (now := presented(tab)) not in seen:
            expect_large(tab)
            tab.await_js(FILLS)
            seen.add(now)
        at, _of, count = now.split(" ")[:3]
        if at == count:
            return
        tab.page.keyboard.press("ArrowDown")
    raise AssertionError(f"no last figure behind {seen}")


def test_a_clicker_goes_from_beat_to_beat_and_figure_to_figure(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=recorded-korean&present=1", viewport=LOW)
    name = tab.page.locator(".presenter .name")
    expect(name).to_contain_text("The training")
    where = tab.main.locator(".stage .where")
    expect(where).to_have_text("Step 1,000 of 1,000")
    tab.page.keyboard.press("PageUp")  # a snapshot back
    expect(where).not_to_have_text("Step 1,000 of 1,000")
    tab.page.keyboard.press("ArrowRight")
    expect(where).to_have_text("Step 1,000 of 1,000")
    tab.page.keyboard.press("PageDown")  # behind the last beat comes the next figure
    expect(name).to_contain_text("2 / ")

    tab.page.keyboard.press("ArrowUp")
    expect(name).to_contain_text("The training")
    expect_large_figures(tab)

    # a slider keeps its arrow keys
    for title in ("2 / ", "The training"):
        tab.page.keyboard.press("ArrowUp")
        expect(name).to_contain_text(title)
    tab.main.locator(".stage input[type=range]").focus()
    tab.page.keyboard.press("PageUp")
    expect(name).to_contain_text("The training")

    # heads are beats too; another page goes on, and who has left is not in it again
    tab.goto("attention?run=recorded-korean")
    expect(name).to_contain_text("All heads")
    chosen = tab.main.locator(".heads [aria-selected=true]")
    before = chosen.get_attribute("data-head")
    tab.page.keyboard.press("ArrowLeft")
    expect(chosen).not_to_have_attribute("data-head", str(before))
    expect_large_figures(tab)
    expect(tab.strip).to_be_hidden()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator(".presenter")).to_have_count(0)
    tab.reload()
    expect(tab.page.locator(".presenter")).to_have_count(0)
    expect(tab.strip).to_be_visible()

    # without keys it begins in the menu
    tab.open_menu().get_by_role("button", name="Present this page").click()
    expect(name).to_contain_text("All heads")
    tab.page.locator(".presenter").get_by_role("button", name="Next figure").click()
    expect(name).to_contain_text("2 / ")
    tab.page.locator(".presenter").get_by_role("button", name="Leave presenter mode").click()
    expect(tab.strip).to_be_visible()


def test_a_presented_training_is_whole_and_as_light_as_on_its_page(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=recorded-korean", viewport=LOW)
    stage, most = tab.main.locator(".stage"), tab.main.locator(".stage .lead canvas")
    expect(most).to_be_visible()
    begin(tab)
    expect_large(tab)
    tab.await_js(f"(stage) => ({CUT})(stage).length === 0", stage.element_handle())
    expect(most).to_be_in_viewport(ratio=0.99)  # the rest is the share of a pixel
    assert stage.evaluate(PAPER) == "rgb(255, 255, 255)"


def test_steps_of_a_page_are_beats(open_tab: OpenTab) -> None:
    tab = open_tab("walk?run=recorded-korean&show=run&step=embedding", viewport=LOW)
    name = tab.page.locator(".presenter .name")
    expect(tab.main.locator(".picture canvas.model")).to_be_visible()
    begin(tab)
    expect(name).to_contain_text("1 / 2")
    expect_large(tab)
    tab.page.keyboard.press("ArrowDown")
    expect(name).to_contain_text("2 / 2")
    tab.await_js(FILLS)
    title = tab.main.locator("h2").first
    for key, by in (("PageDown", 1), ("PageDown", 1), ("ArrowLeft", -1)):
        tab.settle()  # the buttons that lead on stand below what has come
        for button in STEPS:
            expect(tab.page.locator(button)).to_be_enabled()
        at = int((title.text_content() or "").split(" ")[0])
        tab.page.keyboard.press(key)
        expect(title).to_contain_text(f"{at + by} · ")
        expect(name).to_contain_text(f"{at + by} · ")
        tab.await_js(FILLS)


@pytest.mark.wide
def test_all_type_is_large_on_every_kind_of_page_and_in_the_bar_of_a_tour(
    open_tab: OpenTab,
) -> None:
    tab, tour = open_tab(viewport=LOW), catalogue.lesson("digit")
    for path in ("build", "by-hand", "masks", "try?view=draw"):
        tab.goto(path)
        expect(tab.main.locator(FIGURES).first).to_be_visible()
        begin(tab)
        expect_large_figures(tab)
        tab.page.keyboard.press("Escape")
        expect(tab.page.locator(".presenter")).to_have_count(0)
    tab.goto("glossary")  # which has no figure
    begin(tab)
    expect_large(tab)
    tab.goto("?run=recorded-digits&tour=digit.1")
    expect(tab.page.locator(".st-key-task-head")).to_contain_text(f"1 of {len(tour.tasks)}")
    tab.settle()
    expect_large(tab)
