"""Pictures to words: from a fresh run to a composed picture that is described."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import experiment
from tests.browser.tab import link_of

pytestmark = pytest.mark.browser

CAPTIONS = experiment(
    "captioner",
    "captions",
    steps=20,
    task_settings={"n_train": 200, "n_validation": 20, "n_test": 20},
    batch_size=16,
    validate_every=20,
)
SCENE = ".st-key-captions-scene-figure .js-plotly-plot"
STRIP = ".st-key-captions-strip .js-plotly-plot"
SHOWN = f"document.querySelector('{STRIP}').data.filter(trace => trace.type === 'heatmap').length"


def test_a_fresh_run_describes_what_is_composed(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(CAPTIONS))
    tab.button("Start").click()
    expect(tab.state("Finished")).to_be_visible()
    expect(tab.main.get_by_role("img", name=re.compile("^an? ")).first).to_be_visible()
    tab.goto(f"captions?run={tab.run_id}")
    expect(tab.main.locator(STRIP)).to_be_visible()
    for name in ("Swap places", "Next picture"):
        expect(tab.said("Truth")).not_to_have_text("")
        before = tab.said("Truth").inner_text()
        tab.button(name).click()
        expect(tab.said("Truth")).not_to_have_text(before)
    assert tab.page.evaluate(SHOWN) >= 1
    tab.main.get_by_text("Draw it").first.click()
    expect(tab.main.get_by_text("Draw digit 1 on its pad")).to_be_visible()
    expect(tab.main.locator(SCENE)).to_be_visible()
