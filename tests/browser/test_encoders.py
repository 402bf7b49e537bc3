"""Reading in a real browser: an example changes the answer, a word is hidden by a press."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.inspect.readers import reading_run

pytestmark = pytest.mark.browser


def test_an_example_is_read_and_a_word_is_hidden_by_a_press(
    server: AppServer, open_tab: OpenTab
) -> None:
    reading_run(server.store, "sentiment")
    tab = open_tab("encoders")
    expect(tab.main.get_by_text("The rule says negative")).to_be_visible()
    tab.main.get_by_role("button", name="Examples").click()
    tab.page.get_by_role("button", name="The film was very good.").click()
    tab.page.keyboard.press("Escape")
    expect(tab.main.get_by_text("The rule says positive")).to_be_visible()
    tab.main.get_by_role("textbox", name="Your sentence").fill("the fod was good")
    tab.page.keyboard.press("Enter")
    expect(tab.main.get_by_text("is not a word of this task")).to_be_visible()

    # a word is hidden by a press
    reading_run(server.store, "masked-words")
    tab.goto("encoders")
    tab.main.get_by_text("Fill in the blank").click()
    expect(tab.main.get_by_text("True entropy")).to_have_count(1)
    tab.button("hungry").click()
    expect(tab.main.get_by_text("True entropy")).to_have_count(2)
