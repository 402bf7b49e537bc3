"""The frame: the bar, the search, and the menu with the links and the classroom."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, OpenTab

pytestmark = pytest.mark.browser

PHONE, PROJECTOR = {"width": 390, "height": 844}, {"width": 1280, "height": 720}
AT_THE_END = """() => {
    const main = document.querySelector('[data-testid=stMain]');
    main.scrollTop = main.scrollHeight;
    return main.scrollTop > 200;
}"""
INSIDE = """node => {
    const box = node.getBoundingClientRect();
    return box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
}"""


def test_the_frame_is_one_line_that_stays_in_sight_and_a_term_is_explained(
    open_tab: OpenTab,
) -> None:
    tab = open_tab("by-hand?run=recorded-korean", viewport=PHONE)
    for viewport in (PHONE, PROJECTOR):
        tab.page.set_viewport_size(viewport)
        tab.await_js(AT_THE_END)
        assert tab.strip.get_by_role("combobox").first.evaluate(INSIDE)
        box = tab.strip.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 45

    # a term: on hover, on focus, and on a press with a link to where it is taught
    word = tab.page.locator("a[href^='#term-']:visible").first
    meaning = tab.page.locator(".meaning")
    tab.hover(word, tab.page.locator(".meaning:visible"))
    expect(meaning).to_have_role("tooltip")
    tab.page.mouse.move(0, 0)
    expect(meaning).to_be_hidden()
    word.focus()
    expect(meaning).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()
    word.click()
    expect(meaning).to_have_role("dialog")
    expect(meaning.get_by_role("link")).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile("stage=projections"))
    tab.go_to("Train")
    expect(tab.page).to_have_url(re.compile(r"/train\?run=recorded-korean"))

    # tabs and head leave the subject to begin near 120 px
    tab.goto("attention?run=recorded-korean")
    head = tab.main.locator(".st-key-head").bounding_box()
    assert head is not None
    assert head["y"] + head["height"] <= 122


def test_a_term_is_found_by_its_key_and_a_link_copied_or_shown(open_tab: OpenTab) -> None:
    tab = open_tab("masks?mask=causal", color_scheme="dark")
    field = tab.strip.get_by_role("combobox", name="Search pages and terms")
    expect(field).to_be_visible()
    tab.page.keyboard.press("/")
    expect(field).to_be_focused()
    tab.page.keyboard.type("window/")  # in a field it is a letter
    expect(field).to_have_value("window/")
    tab.page.keyboard.press("Backspace")
    first = tab.strip.get_by_role("option").first
    expect(first).to_contain_text("Sliding window")
    expect(first).to_contain_text("Tokens attend only to their neighbours")
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"/masks\?.*mask=window"))
    expect(tab.main.get_by_role("radio", name="Sliding window")).to_be_checked()
    tab.settle()
    address = tab.copied_link()
    assert address == tab.page.url

    # where nothing can be copied the address is shown
    tab.page.set_viewport_size(PHONE)
    tab.page.evaluate("""() => {
        navigator.clipboard.writeText = () => Promise.reject(new Error("refused"));
        document.execCommand = () => false;
    }""")
    panel = tab.open_menu()
    panel.get_by_role("button", name="Copy link").first.click()
    expect(panel).to_contain_text("Copying is blocked.")
    field = panel.get_by_role("textbox", name="Opens this page with its current settings.")
    expect(field).to_have_value(address)
    expect(field).to_be_focused()
    assert panel.evaluate(INSIDE)
    tab.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()

    # it is shown to a class as a large code, dark on white
    tab.page.set_viewport_size(DESKTOP)
    ask = tab.open_menu().get_by_role("button", name="Show a QR code for this page")
    ask.click()
    board = panel.get_by_role("dialog", name="QR code")
    code = board.get_by_role("img", name=f"QR code: {address}")
    expect(code).to_be_in_viewport(ratio=0.98)
    assert code.evaluate("node => node.naturalWidth && node.height / innerHeight") > 0.5
    expect(board).to_contain_text(address)
    expect(board).to_contain_text("Only this computer can open it")
    tab.page.keyboard.press("Escape")
    expect(board).to_be_hidden()
    expect(ask).to_be_focused()

    # the menu leads to the classroom and goes
    panel.get_by_role("link", name="Classroom").click()
    expect(tab.title).to_contain_text("Classroom")
    expect(tab.title).to_be_focused()
    expect(panel).to_have_count(0)
