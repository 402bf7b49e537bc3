"""Two people with the app open see nothing of each other's settings."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import link_of
from tests.browser.test_train import HEADS, STEPS, number, set_number
from tfm_core.presets import PRESETS

pytestmark = pytest.mark.browser


def test_settings_of_one_session_do_not_reach_another(open_tab: OpenTab) -> None:
    link = link_of(PRESETS["translate"].experiment)
    one, other = open_tab(link), open_tab(link)
    before = str(PRESETS["translate"].experiment.training.steps)
    set_number(one, HEADS, 2)
    expect(one.page).to_have_url(re.compile(r"model\.n_heads=2\b"))
    set_number(one, STEPS, 77)
    expect(one.page).to_have_url(re.compile(r"training\.steps=77\b"))
    other.reload()
    expect(number(other, HEADS)).to_have_value("4")
    expect(number(other, STEPS)).to_have_value(before)
    set_number(other, STEPS, 88)
    expect(other.page).to_have_url(re.compile(r"training\.steps=88\b"))
    expect(number(one, STEPS)).to_have_value("77")


def test_the_view_of_one_session_does_not_move_anothers(open_tab: OpenTab) -> None:
    one, other = (open_tab("attention?run=recorded-korean") for _person in range(2))
    heads = [tab.main.get_by_role("gridcell", name="Layer 1, Head 4:") for tab in (one, other)]
    shown = other.main.get_by_role("heading", name=re.compile(r"^Layer \d, head [123]:"))
    expect(shown).to_have_count(1)
    heads[0].click()
    expect(one.main.get_by_text("Layer 1, head 4", exact=True)).to_be_visible()
    other.main.get_by_role("button", name="Back").click()
    expect(other.page).to_have_url(re.compile(r"\bstep=\d+\b"))
    expect(shown).to_have_count(1)
    expect(heads[1]).to_have_attribute("aria-selected", "false")
