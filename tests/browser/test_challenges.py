"""The gallery of challenges: its links lead to the page itself, and the address follows."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser


def test_the_address_follows_from_card_to_card_and_back(open_tab: OpenTab) -> None:
    page = open_tab("challenges").page
    title = page.get_by_role("heading", level=1)

    def at(name: str, query: str) -> None:
        expect(title).to_have_text([name])  # the page before may still be leaving
        expect(page).to_have_url(re.compile(rf"/challenges{query}$"))

    page.get_by_text("Block styles", exact=True).click()
    page.get_by_role("link", name="a chapter of Alice").click()
    at("GPT-2, Llama, Qwen, Mixtral: a chapter of Alice", r"\?experiment=styles-write")
    expect(title).to_be_focused()
    page.get_by_role("link", name="Next").click()
    at("A plain bug", r"\?bug=1")
    page.go_back()
    at("GPT-2, Llama, Qwen, Mixtral: a chapter of Alice", r"\?experiment=styles-write")
    page.get_by_role("button", name="All challenges").click()
    at("Challenges", "")
    page.get_by_role("link", name="Name the bug").click()
    at("Name the bug", r"\?lesson=name-the-bug")
    page.get_by_role("button", name="Open Challenges").click()
    at("A plain bug", r"\?bug=1&lesson=name-the-bug\.1")
    page.get_by_role("link", name="Lesson: Name the bug").click()
    at("Name the bug", r"\?lesson=name-the-bug\.1")
