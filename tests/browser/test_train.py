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


def test_heads_that_do_not_divide_the_width_are_told_at_their_control(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(PRESETS["translate"].experiment))
    expect(tab.button("Start")).to_be_enabled()
    set_number(tab, HEADS, 3)
    expect(tab.button("Start")).to_be_disabled()
    column = tab.main.get_by_test_id("stColumn").filter(has=number(tab, HEADS)).last
    expect(column.get_by_text("n_heads 3 does not divide")).to_be_visible()
    expect(tab.main.get_by_text("Can't start yet")).to_be_visible()
    set_number(tab, HEADS, 4)
    expect(tab.button("Start")).to_be_enabled()
    expect(tab.main.get_by_text("Can't start yet")).to_be_hidden()


@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        (
            "model.family=vit&model.n_heads=many&model.wings=2&training.steps=-5&task.name=copy",
            ("many", "There is no setting model.wings", "-5", "not for this family"),
        ),
        ("model.family=perceptron", ("must be one of",)),
    ],
)
def test_a_link_edited_by_hand_says_what_it_cannot_have(
    open_tab: OpenTab, query: str, sentences: tuple[str, ...]
) -> None:
    tab = open_tab(f"train?{query}")
    warning = tab.main.get_by_role("alert").filter(has_text="Some settings of the link")
    for sentence in sentences:
        expect(warning).to_contain_text(sentence)
    expect(tab.button("Start")).to_be_enabled()
    tab.button("Dismiss").click()
    expect(warning).to_be_hidden()


def test_a_link_to_an_unknown_run_says_so(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=there-is-no-such-run")
    expect(tab.page.get_by_role("alert")).to_contain_text("in this link is not here")


def test_a_copied_link_opens_the_same_configuration_for_someone_else(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(experiment("vit", "mnist-5000", steps=123)))
    set_number(tab, HEADS, 2)
    expect(tab.page).to_have_url(re.compile(r"model\.n_heads=2\b"))
    tab.settle()
    link = tab.copied_link()
    assert parse_qs(urlsplit(link).query) == parse_qs(urlsplit(tab.page.url).query)
    other = open_tab(link.removeprefix(f"{tab.url}/"))
    expect(number(other, HEADS)).to_have_value("2")
    expect(number(other, STEPS)).to_have_value("123")
    expect(other.main.get_by_role("radio", name="Vision Transformer")).to_be_checked()


def test_what_is_typed_wrong_is_said_and_start_stays_in_sight(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(PRESETS["vit-digits"].experiment))
    for place in (tab.title, tab.main.get_by_role("textbox", name="Run name")):
        place.scroll_into_view_if_needed()
        expect(tab.button("Start")).to_be_in_viewport(ratio=1)

    # numbers out of range are said and reset heals them
    wrong = {"Layers": "0", STEPS: "1000000000", "Batch size": "100000", "Learning rate": "1e9"}
    wrong |= {"Dropout": "2", "Seed": "1000000000000"}
    for label, value in wrong.items():
        number(tab, label).fill(value)
        number(tab, label).press("Enter")
    expect(tab.main.get_by_text("it must be")).to_have_count(len(wrong))
    expect(tab.main.get_by_text("Can't start yet")).to_contain_text("Seed")
    expect(tab.button("Start")).to_be_disabled()
    number(tab, HEADS).fill("99999999999999999999")  # more than Streamlit sends at all
    tab.main.get_by_role("button", name="Reset all").click()
    expect(tab.button("Start")).to_be_enabled()
    expect(tab.main.get_by_text("it must be")).to_have_count(0)
    model = PRESETS["vit-digits"].experiment.model
    expect(number(tab, HEADS)).to_have_value(str(model.n_heads))
    expect(number(tab, "Layers")).to_have_value(str(model.n_layers))


def test_what_a_change_does_is_in_sight_wherever_one_scrolls(open_tab: OpenTab) -> None:
    tab = open_tab("train?preset=copy", viewport={"width": 1280, "height": 720})
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


def test_presets_that_are_switched_quickly_mix_nothing(open_tab: OpenTab) -> None:
    tab = open_tab("train")
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
