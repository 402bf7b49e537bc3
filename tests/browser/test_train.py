"""The form of the Train page: what does not fit is said, and a link carries the configuration."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import experiment
from tests.browser.tab import Tab, link_of
from tfm_core.choices.config import EncoderDecoderConfig
from tfm_core.choices.config.training import TrainingConfig
from tfm_core.choices.presets import PRESETS

pytestmark = pytest.mark.browser

HEADS = EncoderDecoderConfig.model_fields["n_heads"].title or ""
STEPS = TrainingConfig.model_fields["steps"].title or ""


def number(tab: Tab, label: str) -> Locator:
    return tab.page.get_by_role("spinbutton", name=label, exact=True)


def set_number(tab: Tab, label: str, value: int) -> None:
    number(tab, label).fill(str(value))
    number(tab, label).press("Enter")


def test_what_is_typed_wrong_is_told_at_its_control_and_start_stays_in_sight(
    open_tab: OpenTab,
) -> None:
    model = PRESETS["vit-digits"].experiment.model
    tab = open_tab(link_of(PRESETS["vit-digits"].experiment))
    tab.page.set_viewport_size({"width": 1280, "height": 720})
    tab.open_all_settings()
    for place in (tab.title, tab.main.get_by_role("textbox", name="Run name")):
        place.scroll_into_view_if_needed()
        expect(tab.button("Start")).to_be_in_viewport(ratio=0.98)
    set_number(tab, "Seed", 7)
    expect(tab.main.get_by_text("Seed 0 → 7")).to_be_in_viewport(ratio=0.98)

    # heads that do not divide the width
    set_number(tab, HEADS, 3)
    expect(tab.button("Start")).to_be_disabled()
    column = tab.main.get_by_test_id("stColumn").filter(has=number(tab, HEADS)).last
    expect(column.get_by_text("n_heads 3 does not divide")).to_be_visible()
    expect(tab.main.get_by_text("Can't start yet")).to_be_visible()
    tab.button("Undo").click()
    expect(number(tab, HEADS)).to_have_value(str(model.n_heads))
    expect(number(tab, "Seed")).to_have_value("7")
    expect(tab.button("Start")).to_be_enabled()
    expect(tab.main.get_by_text("Can't start yet")).to_be_hidden()

    # numbers out of range are said, and reset heals also what Streamlit does not send
    for n, (label, value) in enumerate({"Layers": 0, STEPS: 1_000_000_000}.items(), 1):
        set_number(tab, label, value)
        expect(tab.main.get_by_text("it must be")).to_have_count(n)
    expect(tab.main.get_by_text("Can't start yet")).to_contain_text(STEPS)
    expect(tab.button("Start")).to_be_disabled()
    number(tab, HEADS).fill("99999999999999999999")
    tab.main.get_by_role("button", name="Reset all").click()
    expect(tab.button("Start")).to_be_enabled()
    expect(tab.main.get_by_text("it must be")).to_have_count(0)
    expect(number(tab, HEADS)).to_have_value(str(model.n_heads))
    expect(number(tab, "Layers")).to_have_value(str(model.n_layers))


def test_a_copied_link_opens_the_same_configuration_and_sessions_stay_separate(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(link_of(experiment("vit", "mnist-5000", steps=123)))
    tab.open_all_settings()
    set_number(tab, HEADS, 2)
    expect(tab.page).to_have_url(re.compile(r"model\.n_heads=2\b"))
    tab.settle()
    link = tab.copied_link()
    assert parse_qs(urlsplit(link).query) == parse_qs(urlsplit(tab.page.url).query)
    other = open_tab(link.removeprefix(f"{tab.url}/"))
    other.open_all_settings()
    expect(number(other, HEADS)).to_have_value("2")
    expect(number(other, STEPS)).to_have_value("123")
    expect(other.main.get_by_role("combobox", name="Model family")).to_have_value(
        "Vision Transformer"
    )
    set_number(tab, STEPS, 77)
    expect(tab.page).to_have_url(re.compile(r"training\.steps=77\b"))
    set_number(other, HEADS, 8)
    expect(other.page).to_have_url(re.compile(r"model\.n_heads=8\b"))
    expect(number(other, STEPS)).to_have_value("123")
    expect(number(tab, HEADS)).to_have_value("2")
