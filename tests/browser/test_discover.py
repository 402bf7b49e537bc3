"""The findings, cold: a guess, what the recorded runs show, and a look inside one of them."""

import re

import pytest
from playwright.sync_api import expect

from pages.discover.recipe import BEGINNING
from tests.browser.conftest import OpenTab
from tfm_core.inspect.discover.phenomenon import PHENOMENA
from tfm_core.recorded.build import FINDINGS

pytestmark = pytest.mark.browser

N_LINES = "node._fullData.filter(d => d.showlegend).length"


@pytest.mark.parametrize("name", FINDINGS)
def test_a_guess_shows_what_the_recorded_runs_found(open_tab: OpenTab, name: str) -> None:
    one = PHENOMENA[name]
    tab = open_tab(name)
    expect(tab.main.get_by_text("Expect:")).to_have_count(0)
    seen = tab.plotly("discover-beginning", "Math.max(...node._fullData.flatMap(d => [...d.x]))")
    assert 0 < seen <= BEGINNING * one.base.training.steps
    tab.main.get_by_role("radio", name=one.question.answer).check(force=True)
    tab.button("Check").click()
    expect(tab.main.get_by_text("Expect:")).to_be_visible()
    tab.await_plotly("discover-curves", f"{N_LINES} >= arg", len(one.arms))
    expect(tab.main.get_by_text("Recorded")).to_have_count(len(one.arms))

    tab.main.get_by_role("link", name="Look inside").click()
    expect(tab.page).to_have_url(re.compile(f"attention.*run=recorded-{name}-{one.arms[0].name}"))
    expect(tab.main.get_by_text(re.compile(r"^Layer \d, head \d")).first).to_be_visible()
