"""Build: the diagram and its blocks, settings that change it, the code to take away."""

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


def block(tab: Tab, name: str) -> Locator:
    """Return a block of the diagram by the beginning of what it is called."""
    return tab.main.locator(f".diagram g.node[role=button][aria-label^='{name}']")


def set_number(tab: Tab, label: str, value: str) -> None:
    field = tab.main.get_by_role("spinbutton", name=label)
    field.fill(value)
    field.press("Enter")


def expect_all_fits(tab: Tab) -> None:
    """The whole diagram is in sight at first, and again on request."""
    logits, view = block(tab, "Logits"), tab.main.locator(".diagram .view")
    expect(logits).to_be_attached()
    is_whole = "view => view.scrollHeight <= view.clientHeight + 1"
    assert view.evaluate(is_whole)
    tab.button("Larger").click()
    tab.button("Larger").click()
    assert not view.evaluate(is_whole)
    tab.button("Fit all").click()
    assert view.evaluate(is_whole)


def test_the_diagram_answers_clicks_and_settings(open_tab: OpenTab) -> None:
    tab = open_tab(TEXT)
    expect_all_fits(tab)
    assert tab.main.locator(".diagram g.edge.across").count() == 1
    block(tab, "Decoder blocks 1 to 2: cross-attention").click()
    expect(block(tab, "Decoder blocks 1 to 2: cross-attention")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(tab.main.get_by_text("decoder.layers.0–1.cross_attention.in_projection")).to_be_visible()
    tab.main.locator(".diagram").get_by_role("button", name="Data as a table").click()
    table = tab.page.get_by_role("dialog").get_by_role("table")
    row = table.get_by_role("row", name=re.compile("^Decoder blocks 1 to 2: cross-attention"))
    expect(row).to_contain_text("parameters per block")
    expect(row.get_by_role("cell").last).to_contain_text("LayerNorm behind the encoder")
    tab.page.keyboard.press("Escape")
    block(tab, "Encoder blocks 1 to 2: feed-forward").click()
    expect(tab.main.locator("pre", has_text="class FeedForward").first).to_be_visible()

    # a setting changes diagram and code, and one that cannot be says so
    tab.main.get_by_text("Change the model").click()
    set_number(tab, "d_model", "96")
    expect(tab.main.locator(".diagram g.node", has_text="4 heads x 24").first).to_be_visible()
    expect(tab.page).to_have_url(re.compile(r"model\.d_model=96"))
    set_number(tab, "Heads", "7")
    wrong = tab.main.get_by_text(re.compile("7 does not divide"))
    expect(wrong).to_have_count(1)  # beside the field, in the form that stays open
    expect(wrong).to_be_visible()
    expect(tab.main.get_by_text("Showing the last valid configuration")).to_be_visible()
    expect(tab.main.locator(".diagram g.node", has_text="4 heads x 24").first).to_be_visible()
    set_number(tab, "Heads", "8")
    expect(tab.main.locator(".diagram g.node", has_text="8 heads x 12").first).to_be_visible()
    expect(wrong).to_have_count(0)
    expect(tab.main.get_by_role("spinbutton", name="Heads")).to_be_visible()
    with tab.page.expect_download() as download:
        tab.button("Download model.py").click()
    assert "d_model 96, 8 heads" in download.value.path().read_text(encoding="utf-8")

    # a block leads to its step of the walk
    block(tab, "Encoder blocks 1 to 2: self-attention").click()
    tab.main.get_by_role("link", name="Step 8: Scores, scaled").click()
    expect(tab.main.get_by_text("8 · Scores, scaled", exact=True).first).to_be_visible()


def test_a_deep_model_is_walked_by_keys_on_a_phone(open_tab: OpenTab) -> None:
    tab = open_tab("build?show=gpt2-small", viewport=PHONE)
    expect_all_fits(tab)
    chosen = block(tab, "Decoder blocks 1 to 12: self-attention")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    chosen.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    title = "Decoder blocks 1 to 12: sum around self-attention"
    expect(block(tab, title)).to_have_attribute("aria-pressed", "true")
    close_up = tab.main.get_by_role("combobox", name=re.compile("One block close up"))
    expect(close_up).to_have_value(title)
    wide = "document.querySelector('[data-testid=stMain]')"
    assert tab.page.evaluate(f"{wide}.scrollWidth <= {wide}.clientWidth")
