"""Build: the picture and its parts, settings that change it, the code to take away."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

TEXT = (
    "build?model.family=encoder-decoder&task.name=copy&model.n_heads=4&model.d_model=64"
    "&model.n_encoder_layers=2&model.n_decoder_layers=2"
)
PHONE = {"width": 390, "height": 844}


def set_number(tab: Tab, label: str, value: str) -> None:
    field = tab.main.get_by_role("spinbutton", name=label)
    field.fill(value)
    field.press("Enter")


def close_up(tab: Tab) -> Locator:
    """Return the list of the parts."""
    return tab.main.get_by_role("combobox", name=re.compile("One block close up"))


def opened(tab: Tab) -> Locator:
    """Return the name of the part that the picture is at."""
    return tab.main.locator(".picture .trail [aria-current]")


def open_part(tab: Tab, title: str) -> None:
    close_up(tab).fill(title)
    tab.page.get_by_role("option", name=title, exact=True).click()


def test_the_picture_opens_parts_and_follows_settings(open_tab: OpenTab) -> None:
    tab = open_tab(TEXT)
    canvas = tab.main.locator(".picture canvas.model")
    expect(close_up(tab)).to_have_value("Encoder blocks 1 to 2: self-attention")
    open_part(tab, "Decoder blocks 1 to 2: cross-attention")
    expect(opened(tab)).to_have_text("Cross-attention")
    expect(tab.main.get_by_text("decoder.layers.0–1.cross_attention.in_projection")).to_be_visible()
    canvas.press("ArrowRight")
    expect(close_up(tab)).to_have_value("Decoder blocks 1 to 2: sum around cross-attention")
    expect(opened(tab)).to_have_text("+ residual")
    tab.main.locator(".picture").get_by_role("button", name="Data as a table").click()
    table = tab.page.get_by_role("dialog").get_by_role("table")
    row = table.get_by_role("row", name=re.compile("^Decoder, Block 2, Cross-attention"))
    expect(row).to_contain_text("11 × 10")
    expect(row.get_by_role("cell").last).to_contain_text("parameters per block")
    tab.page.keyboard.press("Escape")
    open_part(tab, "Encoder blocks 1 to 2: feed-forward")
    expect(tab.main.locator("pre", has_text="class FeedForward").first).to_be_visible()
    open_part(tab, "Encoder blocks 1 to 2: self-attention")

    # a setting changes picture and code, and one that cannot be says so
    tab.main.get_by_text("Change the model").click()
    set_number(tab, "d_model", "96")
    expect(tab.main.get_by_text("4 heads x 24")).to_be_visible()
    expect(tab.page).to_have_url(re.compile(r"model\.d_model=96"))
    set_number(tab, "Heads", "7")
    wrong = tab.main.get_by_text(re.compile("7 does not divide"))
    expect(wrong).to_have_count(1)  # beside the field, in the form that stays open
    expect(wrong).to_be_visible()
    expect(tab.main.get_by_text("Showing the last valid configuration")).to_be_visible()
    expect(tab.main.get_by_text("4 heads x 24")).to_be_visible()
    set_number(tab, "Heads", "8")
    expect(tab.main.get_by_text("8 heads x 12")).to_be_visible()
    expect(wrong).to_have_count(0)
    expect(tab.main.get_by_role("spinbutton", name="Heads")).to_be_visible()
    with tab.page.expect_download() as download:
        tab.button("Download model.py").click()
    assert "d_model 96, 8 heads" in download.value.path().read_text(encoding="utf-8")

    # a part leads to its step of the walk
    tab.main.get_by_role("link", name="Step 8: Scores, scaled").click()
    expect(tab.main.get_by_text("8 · Scores, scaled", exact=True).first).to_be_visible()


def test_a_deep_model_is_walked_by_keys_on_a_phone(open_tab: OpenTab) -> None:
    tab = open_tab("build?show=gpt2-small", viewport=PHONE)
    expect(close_up(tab)).to_have_value("Decoder blocks 1 to 12: self-attention")
    canvas = tab.main.locator(".picture canvas.model")
    canvas.press("ArrowRight")
    expect(close_up(tab)).to_have_value("Token ids")
    for title in ("Embedding of the tokens", "Positions"):
        canvas.press("ArrowRight")
        expect(close_up(tab)).to_have_value(title)
    wide = "document.querySelector('[data-testid=stMain]')"
    assert tab.page.evaluate(f"{wide}.scrollWidth <= {wide}.clientWidth")
