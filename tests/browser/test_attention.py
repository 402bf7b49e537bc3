"""Attention of a text model: its maps, heads, steps, and sentences of one's own."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import PATIENCE, Tab

pytestmark = pytest.mark.browser

MAP = "attention-map"
WEIGHTS = "String(node._fullData[0].z.map(row => Array.from(row)))"
PHONE, PROJECTOR = {"width": 390, "height": 844}, {"width": 1280, "height": 720}
KOREAN = "attention?run=recorded-korean"
PLAYS = r"/^Step \d{1,3}$/.test(step)"  # no step of it is long in sight: any but the last will do
COUNT_ASKED = """() => {
    window.asked = 0;
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (message) { window.asked += 1; send.call(this, message); };
}"""


def axis(tab: Tab, name: str) -> list[str]:
    """Return the words along the ``x`` or ``y`` axis of the large map."""
    return tab.figure(MAP).locator(f".{name}tick text").all_text_contents()


def head(tab: Tab, layer: int, number: int) -> Locator:
    return tab.main.get_by_role("gridcell", name=f"Layer {layer}, Head {number}:")


def hover(tab: Tab) -> str:
    """Point into the middle of the large map; return what it says there."""
    figure = tab.figure(MAP)
    return tab.hover(figure.locator(".nsewdrag").first, figure.locator(".hoverlayer .hovertext"))


def await_animation(tab: Tab, condition: str) -> Any:
    """Wait for a JavaScript condition of ``step`` and ``press``.

    The page itself looks, in every frame that it draws, so that no step of it is missed.
    """
    return tab.page.wait_for_function(
        f"""heads => {{
            const step = heads.querySelector(".step").textContent;
            const press = name => heads.querySelector(`[aria-label='${{name}}']`).click();
            return {condition};
        }}""",
        arg=tab.main.locator(".heads").element_handle(),
    ).json_value()


def play(tab: Tab) -> None:
    tab.main.locator(".heads").get_by_role("button", name="Play the training").click()


def test_maps_and_heads_answer_pointer_and_keys_and_a_cell_is_opened(open_tab: OpenTab) -> None:
    tab = open_tab(KOREAN, viewport=PROJECTOR)
    for cell in (tab.main.get_by_role("gridcell").first, tab.main.get_by_role("gridcell").last):
        expect(cell).to_be_in_viewport(ratio=0.98)
    tab.await_plotly(MAP, "node._fullLayout.yaxis._length > 100")
    expect(tab.figure(MAP).locator(".heatmaplayer image").first).to_be_in_viewport(ratio=0.98)
    words = hover(tab)
    assert re.search(r"\b[01]\.\d{3,}", words), words
    assert any(token in words for token in axis(tab, "x"))
    assert any(f"writes {token.split()[0]}" in words for token in axis(tab, "y"))  # then its gloss

    # an English voice does not read what is Korean
    glossed = tab.said("Model").locator("ruby").filter(has_text="teacher")
    expect(glossed.locator("span")).to_have_attribute("lang", "ko")
    expect(glossed.locator("rt")).to_have_attribute("lang", "en")

    # hover over the grid of heads says the exact weight, a click picks a head
    head(tab, 1, 2).hover()
    tip = tab.main.locator(".st-key-attention-heads .tip")
    expect(tip).to_contain_text("Layer 1, head 2")
    expect(tip).to_contain_text(re.compile(r"weight [01]\.\d{4}"))
    expect(head(tab, 3, 3)).to_have_attribute("aria-selected", "true")  # it aligns best
    before = tab.plotly(MAP, WEIGHTS)
    head(tab, 1, 3).click()
    expect(tab.main.get_by_text("Layer 1, head 3", exact=True)).to_be_visible()
    tab.await_plotly(MAP, f"{WEIGHTS} !== arg", before)
    expect(tab.page).to_have_url(re.compile(r"\bhead=3\b"))

    # the map is moved over by the arrow keys; Enter or a click opens the arithmetic of a cell
    figure = tab.main.get_by_role("application", name="Map of the head")
    figure.focus()
    figure.press("ArrowDown")
    spoken = tab.main.locator(".st-key-attention-map .spoken")
    expect(spoken).to_have_text(re.compile(r"2: writes .* weight [01]\.\d{4}"))
    figure.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"\bcell=2%2C1\b"))
    expect(tab.main.get_by_text("Softmax")).to_be_visible()
    expect(tab.main.get_by_role("heading", name="Look deeper")).to_be_focused()
    tab.page.keyboard.press("Escape")
    expect(figure).to_be_focused()
    plot = tab.figure(MAP).locator(".nsewdrag").first
    plot.scroll_into_view_if_needed()
    plot.click()
    expect(tab.page).to_have_url(re.compile(r"\bcell=(?!2%2C1\b)\d+%2C\d+"))


def test_the_training_plays_in_the_browser_and_all_moves_with_the_slider(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(f"{KOREAN}&view=lines&pin=q2", reduced_motion="no-preference")
    verdict, lines = tab.main.locator(".line"), tab.main.locator(".lines .say")
    slider = tab.main.locator(".st-key-head-step").get_by_role("slider")
    for key in ("End", "ArrowLeft", "ArrowLeft"):  # not all of it needs to be played
        slider.press(key)
    tab.settle()
    tab.page.evaluate(COUNT_ASKED)
    play(tab)
    assert await_animation(tab, f"{PLAYS} && {{asked: window.asked}}") == {"asked": 0}
    expect(tab.main.locator(".heads .step")).to_have_text("Step 1,000")
    expect(verdict).to_contain_text("✓ right")
    tab.await_js("() => window.asked > 0")  # at its end the page follows

    # where the animation is paused the page follows
    play(tab)
    await_animation(tab, f"{PLAYS} && (press('Pause'), true)")
    expect(tab.page).to_have_url(re.compile(r"\bstep=\d+\b"))
    expect(tab.main.locator(".heads .step")).not_to_have_text("Step 1,000")

    # map, words, answer and heading move with the slider
    title = tab.main.get_by_role("heading", name=re.compile(r"^Layer \d, head \d"))
    slider.press("End")
    expect(verdict).to_contain_text("✓ right")
    expect(tab.page).not_to_have_url(re.compile(r"\bstep="))  # the newest
    tab.settle()
    before, words, weights = title.inner_text(), lines.inner_text(), tab.plotly(MAP, WEIGHTS)
    slider.press("Home")
    expect(verdict).to_contain_text("✗")
    expect(title).not_to_have_text(before)
    expect(lines).not_to_have_text(words)
    tab.await_plotly(MAP, f"{WEIGHTS} !== arg", weights)

    # a token is pinned with the keyboard and the link keeps it
    token = tab.main.get_by_role("button", name=re.compile("^2: writes .+, after .+"))
    expect(token).to_have_attribute("aria-pressed", "true")
    token.focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"\bpin=q3\b"))
    expect(lines).to_contain_text(re.compile("^3: writes .+ · reads: "))
    tab.page.keyboard.press("Escape")
    expect(tab.page).not_to_have_url(re.compile(r"\bpin="))


def test_a_sentence_of_ones_own_is_read_and_an_unknown_word_named(open_tab: OpenTab) -> None:
    tab = open_tab(KOREAN, viewport=PHONE)
    head(tab, 1, 2).click()
    expect(tab.figure(MAP)).to_be_in_viewport(ratio=0.5)
    expect(tab.main.get_by_text("Layer 1, head 2", exact=True)).to_be_in_viewport()
    tab.pick("Example", "Your own")
    sentence = tab.main.locator(".st-key-attention-text input")
    sentence.fill("A teacher bought a book.")
    sentence.press("Enter")
    expect(tab.figure(MAP).locator(".xtick text")).to_have_text(
        ["a", "teacher", "bought", "a", "book"]
    )
    assert axis(tab, "y")[-1].startswith("<eos>")  # rows are named by what they write
    sentence.fill("A teachr bought a book.")
    sentence.press("Enter")
    problem = tab.main.get_by_role("alert")
    expect(problem).to_contain_text("“teachr” is not a word of this task")
    expect(problem).to_contain_text("Try teacher")
    expect(tab.figure(MAP)).to_be_visible()  # of the sentence before
    tab.button("Read “A teacher bought a book.”").click()
    expect(problem).to_have_count(0)
    expect(sentence).to_have_value("A teacher bought a book.")
    sentence.fill("A teacher bought a b")
    completed = tab.page.locator("datalist option[value='A teacher bought a bag']")
    expect(completed).to_have_count(1)
    tab.button("Clear").click()
    expect(problem).to_contain_text("There is nothing to read")
    for word in ("the", "dog", "slept"):
        tab.main.locator(".chips").get_by_role("button", name=word, exact=True).click()
        expect(sentence).to_have_value(re.compile(rf"\b{word}$"))
    expect(tab.said("Model")).to_have_text(re.compile("^개.*는.*잤.*다"))  # glosses between them


def test_the_page_that_plays_works_without_a_server(open_tab: OpenTab, tmp_path: Path) -> None:
    tab = open_tab(f"{KOREAN}&deeper=take")
    with tab.page.expect_download() as download:
        tab.button("Animation (HTML, offline)").click()
    path = tmp_path / "heads.html"
    download.value.save_as(path)
    apart = tab.page.context.browser.new_context(offline=True)  # the app's tab still loads scripts
    apart.set_default_timeout(PATIENCE)
    page = apart.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(path.as_uri())
    expect(page.locator(".heads canvas")).to_have_count(12)
    page.get_by_role("gridcell", name="Layer 1, Head 3").click()
    expect(page.locator("#which")).to_have_text("Layer 1, head 3")
    page.locator(".lines text[data-side=q]").nth(1).hover()
    expect(page.locator(".lines .say")).to_contain_text(
        re.compile("^2: writes .+, after .+ · reads")
    )
    page.get_by_role("slider").press("Home")
    expect(page.locator(".heads .step")).to_have_text("Step 0")
    expect(page.locator(".heads .answer")).to_contain_text("✗ wrong")
    apart.close()
    assert errors == []
