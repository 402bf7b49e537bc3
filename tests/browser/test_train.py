"""The Train page: what does not fit is said, and a link carries the whole configuration."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import experiment
from tests.browser.tab import Tab, link_of
from tfm_core.config import EncoderDecoderConfig
from tfm_core.config.training import TrainingConfig
from tfm_core.presets import PRESETS

pytestmark = pytest.mark.browser

HEADS = EncoderDecoderConfig.model_fields["n_heads"].title or ""
STEPS = TrainingConfig.model_fields["steps"].title or ""


def number(tab: Tab, label: str) -> Locator:
    return tab.page.get_by_role("spinbutton", name=label, exact=True)


def set_number(tab: Tab, label: str, value: int) -> None:
    number(tab, label).fill(str(value))
    number(tab, label).press("Enter")


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
    other.reload()
    other.open_all_settings()
    expect(number(other, STEPS)).to_have_value("123")
    set_number(other, STEPS, 88)
    expect(other.page).to_have_url(re.compile(r"training\.steps=88\b"))
    expect(number(tab, STEPS)).to_have_value("77")


def test_what_is_typed_wrong_is_told_at_its_control_and_start_stays_in_sight(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(link_of(PRESETS["vit-digits"].experiment))
    tab.open_all_settings()
    for place in (tab.title, tab.main.get_by_role("textbox", name="Run name")):
        place.scroll_into_view_if_needed()
        expect(tab.button("Start")).to_be_in_viewport(ratio=1)

    # heads that do not divide the width
    set_number(tab, HEADS, 3)
    expect(tab.button("Start")).to_be_disabled()
    column = tab.main.get_by_test_id("stColumn").filter(has=number(tab, HEADS)).last
    expect(column.get_by_text("n_heads 3 does not divide")).to_be_visible()
    expect(tab.main.get_by_text("Can't start yet")).to_be_visible()
    set_number(tab, HEADS, PRESETS["vit-digits"].experiment.model.n_heads)
    expect(tab.button("Start")).to_be_enabled()
    expect(tab.main.get_by_text("Can't start yet")).to_be_hidden()

    # numbers out of range are said and reset heals them
    wrong = {"Layers": "0", STEPS: "1000000000", "Batch size": "100000", "Learning rate": "1e9"}
    wrong |= {"Dropout": "2", "Seed": "1000000000000"}
    for n, (label, value) in enumerate(wrong.items(), 1):
        number(tab, label).fill(value)
        number(tab, label).press("Enter")
        expect(tab.main.get_by_text("it must be")).to_have_count(n)
    expect(tab.main.get_by_text("Can't start yet")).to_contain_text("Seed")
    expect(tab.button("Start")).to_be_disabled()
    number(tab, HEADS).fill("99999999999999999999")  # more than Streamlit sends at all
    tab.main.get_by_role("button", name="Reset all").click()
    expect(tab.button("Start")).to_be_enabled()
    expect(tab.main.get_by_text("it must be")).to_have_count(0)
    model = PRESETS["vit-digits"].experiment.model
    expect(number(tab, HEADS)).to_have_value(str(model.n_heads))
    expect(number(tab, "Layers")).to_have_value(str(model.n_layers))


def test_a_change_says_its_effect_and_presets_switched_quickly_mix_nothing(
    open_tab: OpenTab,
) -> None:
    tab = open_tab("train?preset=copy", viewport={"width": 1280, "height": 720})
    tab.open_all_settings()
    set_number(tab, "Seed", 7)
    line = tab.main.get_by_text("Seed 0 → 7")
    expect(line).to_be_in_viewport(ratio=1)
    set_number(tab, STEPS, 1200)
    effect = tab.main.get_by_text(re.compile(r"Steps 600 → 1,200: time .* → .* \(\+100 %\)"))
    expect(effect).to_be_in_viewport(ratio=1)
    tab.button("Undo").click()
    expect(number(tab, STEPS)).to_have_value("600")
    tab.button("Redo").click()
    expect(number(tab, STEPS)).to_have_value("1200")
    tab.button("Steps: back to 600").click()
    expect(number(tab, STEPS)).to_have_value("600")
    expect(number(tab, "Seed")).to_have_value("7")

    # presets are switched quickly
    box = tab.page.get_by_role("combobox", name="Preset", exact=True)
    for count in range(12):
        box.click()
        for _ in range(1 + count % 3):
            tab.page.keyboard.press("ArrowDown")
        tab.page.keyboard.press("Enter")
    tab.settle()
    labels = {preset.label: preset for preset in PRESETS.values()}
    chosen = labels[box.input_value()].experiment
    expect(tab.main.locator(".st-key-configure-changes")).to_have_count(0)
    expect(number(tab, STEPS)).to_have_value(str(chosen.training.steps))
    expect(tab.button("Start")).to_be_enabled()
