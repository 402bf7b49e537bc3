"""Attention of a text model: its maps, heads, steps, and sentences of one's own."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

MAP = "attention-map"
WEIGHTS = "String(node._fullData[0].z.map(row => Array.from(row)))"
PHONE, PROJECTOR = {"width": 390, "height": 844}, {"width": 1280, "height": 720}
KOREAN = "attention?run=recorded-korean"


def axis(tab: Tab, name: str) -> list[str]:
    """Return the words along the ``x`` or ``y`` axis of the large map."""
    return tab.figure(MAP).locator(f".{name}tick text").all_text_contents()


def head(tab: Tab, layer: int, number: int) -> Locator:
    return tab.main.get_by_role("gridcell", name=f"Layer {layer}, Head {number}:")


def hover(tab: Tab) -> str:
    """Point into the middle of the large map; return what it says there."""
    figure = tab.figure(MAP)
    return tab.hover(figure.locator(".nsewdrag").first, figure.locator(".hoverlayer .hovertext"))


def test_maps_and_heads_answer_the_pointer_of_each_person_apart(open_tab: OpenTab) -> None:
    tab = open_tab(KOREAN)
    expect(tab.figure(MAP).locator(".xtick text").first).to_be_visible()
    words = hover(tab)
    assert re.search(r"\b[01]\.\d{3,}", words), words
    assert any(token in words for token in axis(tab, "x"))
    assert any(f"writes {token.split()[0]}" in words for token in axis(tab, "y"))  # then its gloss

    # an English voice does not read what is Korean
    glossed = tab.said("Model").locator("ruby").filter(has_text="teacher")
    expect(glossed.locator("span")).to_have_attribute("lang", "ko")
    expect(glossed.locator("rt")).to_have_attribute("lang", "en")

    # hover over the grid of heads says the exact weight
    head(tab, 1, 2).hover()
    tip = tab.main.locator(".heads .tip")
    expect(tip).to_contain_text("Layer 1, head 2")
    expect(tip).to_contain_text(re.compile(r"weight [01]\.\d{4}"))

    # a click in the grid picks another head and the link keeps it
    expect(head(tab, 3, 3)).to_have_attribute("aria-selected", "true")  # it aligns best
    expect(tab.main.get_by_text("Layer 3, head 3", exact=True)).to_be_visible()
    before = tab.plotly(MAP, WEIGHTS)
    head(tab, 1, 3).click()
    expect(tab.main.get_by_text("Layer 1, head 3", exact=True)).to_be_visible()
    tab.await_plotly(MAP, f"{WEIGHTS} !== arg", before)
    picked = tab.plotly(MAP, WEIGHTS)
    expect(tab.page).to_have_url(re.compile(r"\bhead=3\b"))
    other = open_tab(tab.page.url.removeprefix(f"{tab.url}/"))
    expect(head(other, 1, 3)).to_have_attribute("aria-selected", "true")
    other.await_plotly(MAP, f"{WEIGHTS} === arg", picked)

    # where one is in the training moves nothing for somebody else
    tab.button("Back").click()
    expect(tab.page).to_have_url(re.compile(r"\bstep=\d+\b"))
    expect(other.main.get_by_text("at step 1,000", exact=True)).to_be_visible()
    head(other, 1, 4).click()
    expect(other.main.get_by_text("Layer 1, head 4", exact=True)).to_be_visible()
    tab.button("Back").click()
    expect(tab.main.get_by_text("Layer 1, head 3", exact=True)).to_be_visible()
    expect(head(tab, 1, 3)).to_have_attribute("aria-selected", "true")


def test_the_map_answers_keys_and_clicks_and_the_scrubber_goes_through_the_training(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(KOREAN)
    answer = tab.said("Model")
    expect(tab.main.get_by_text("at step 1,000")).to_be_visible()
    last = tab.plotly(MAP, WEIGHTS)
    expect(answer).not_to_have_text("")
    learned = answer.inner_text()
    slider = tab.main.get_by_role("slider", name="Training step")
    slider.press("Home")
    expect(tab.main.get_by_text("at step 0", exact=True)).to_be_visible()
    tab.await_plotly(MAP, f"{WEIGHTS} !== arg", last)
    expect(answer).not_to_have_text(learned)
    slider.press("End")
    tab.await_plotly(MAP, f"{WEIGHTS} === arg", last)
    expect(answer).to_have_text(learned)

    # the map is moved over by the arrow keys
    figure = tab.main.get_by_role("application", name="Map of the head")
    figure.focus()
    figure.press("ArrowDown")
    expect(figure).to_have_attribute("aria-label", re.compile(r"2: writes .* weight [01]\.\d{4}"))
    figure.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"\bcell=2%2C1\b"))
    expect(tab.main.get_by_text("Softmax")).to_be_visible()

    # a click on a cell opens its arithmetic too
    plot = tab.figure(MAP).locator(".nsewdrag").first
    plot.scroll_into_view_if_needed()
    plot.click()
    expect(tab.page).to_have_url(re.compile(r"\bcell=(?!2%2C1\b)\d+%2C\d+"))


def test_a_sentence_of_ones_own_is_read_and_an_unknown_word_named(open_tab: OpenTab) -> None:
    tab = open_tab(f"{KOREAN}&lang=en", locale="ko-KR")  # where Korean needs no glosses
    tab.choose_behind("Your own")
    sentence = tab.main.locator(".st-key-attention-text input")
    sentence.fill("A teacher bought a book.")
    sentence.press("Enter")
    expect(tab.figure(MAP).locator(".xtick text")).to_have_text(
        ["a", "teacher", "bought", "a", "book"]
    )
    expect(tab.said("Model")).to_have_text("선생님이 책을 샀다.")
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
    sentence.press("Enter")
    expect(problem).to_contain_text("“b” is not a word")
    tab.button("Clear").click()
    expect(problem).to_contain_text("There is nothing to read")
    for word in ("the", "dog", "slept"):
        tab.main.locator(".chips").get_by_role("button", name=word, exact=True).click()
        expect(sentence).to_have_value(re.compile(rf"\b{word}$"))
    expect(tab.said("Model")).to_have_text("개는 잤다.")


def test_the_maps_stand_in_the_first_screen_of_a_projector_and_of_a_phone(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(KOREAN, viewport=PROJECTOR)
    expect_maps_in_sight(tab)
    tab.page.set_viewport_size(PHONE)
    head(tab, 1, 2).click()
    expect(tab.figure(MAP)).to_be_in_viewport(ratio=0.5)
    expect(tab.main.get_by_text("Layer 1, head 2", exact=True)).to_be_in_viewport()

    # a square map leaves no empty room: the height that it does not take goes back to the page
    tab.page.set_viewport_size(PROJECTOR)
    tab.goto("attention?run=recorded-digits")
    expect_maps_in_sight(tab)
    tab.page.set_viewport_size(PHONE)
    tab.await_plotly(MAP, "node._fullLayout._size.h - node._fullLayout.yaxis._length < 100")
    tab.await_plotly(MAP, "node._fullLayout._size.w - node._fullLayout.xaxis._length < 25")


def expect_maps_in_sight(tab: Tab) -> None:
    cells = tab.main.get_by_role("gridcell")
    expect(cells.last).to_be_in_viewport(ratio=1)
    expect(cells.first).to_be_in_viewport(ratio=1)
    tab.await_plotly(MAP, "node._fullLayout.yaxis._length > 100")
    expect(tab.figure(MAP).locator(".heatmaplayer image").first).to_be_in_viewport(ratio=1)
