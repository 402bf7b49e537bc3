"""The page on GPTs: train one, read with it, let it write."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import experiment
from tests.browser.tab import link_of

pytestmark = pytest.mark.browser

SMALL = experiment(
    "decoder-only",
    "grammar",
    steps=60,
    model={"position": "learned", "d_model": 32},
    task_settings={"n_train": 500, "n_validation": 50, "n_test": 50},
)


def test_a_model_is_trained_reads_and_writes(open_tab: OpenTab) -> None:
    tab = open_tab(link_of(SMALL))
    tab.button("Start").click()
    expect(tab.state("Finished")).to_be_visible()
    expect(tab.main.get_by_text("Perplexity").first).to_be_visible()
    tab.goto(f"gpt?run={tab.run_id}")
    text = tab.main.get_by_role("textbox", name="Text")
    text.fill("the dog eats an apple")
    text.press("Control+Enter")
    expect(tab.main.locator(".tfm-gpt.text .t")).to_have_text(
        ["the", "dog", "eats", "an", "apple", "<eos>"]
    )
    expect(tab.main.locator(".tfm-gpt .picked")).to_have_count(1)
    text.fill("the dgo eats")
    text.press("Control+Enter")
    expect(tab.main.get_by_text("Not in the text the model learned from: “dgo”")).to_be_visible()
    expect(text).to_have_value("the dgo eats")

    tab.choose("Write")
    tab.button("Write one token").click()
    expect(tab.main.get_by_text("1 of 80 tokens")).to_be_visible()
    expect(tab.main.locator(".tfm-gpt.text").first.locator(".own")).to_have_count(1)
    tab.button("Write the rest").click()
    expect(tab.main.get_by_text(re.compile(r"(of the first sample|has ended)"))).to_be_visible()
    expect(tab.button("Restart")).to_be_enabled()
    tab.button("Restart").click()
    expect(tab.main.get_by_text("0 of 80 tokens")).to_be_visible()
    expect(tab.main.locator(".tfm-gpt.text .own")).to_have_count(0)

    tab.choose("Lens")
    tab.await_plotly("gpt-lens-map", "node._fullData[0].z[0].length === 3")
