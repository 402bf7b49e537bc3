"""Before the Transformer: a list in use stays open while runs that are watched end."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.inspect.constructed import constructed_run, write_state
from tfm_core.studies.experiments import race_of_attention

pytestmark = [pytest.mark.browser, pytest.mark.wide]

SOURCE = "JSON.stringify(node.layout.xaxis.ticktext)"


def test_a_list_in_use_stays_open_while_runs_end(open_tab: OpenTab, server: AppServer) -> None:
    runs = [
        constructed_run(server.store, racer, state="running")
        for racer in race_of_attention("numbers").experiments.values()
    ]
    # nothing needs scrolling
    tab = open_tab("before?task=numbers", viewport={"width": 1440, "height": 2400})
    expect(tab.main.locator(".stMarkdownBadge", has_text="Training")).to_have_count(len(runs))
    sentence = tab.main.get_by_role("combobox", name=re.compile("Unseen sentence"))
    options = tab.open_list(sentence)
    expect(options).to_have_count(3)
    for run in runs:
        write_state(run, "finished", 600)
    expect(tab.main.locator(".stMarkdownBadge", has_text="Finished")).to_have_count(len(runs))
    words = tab.plotly("before-map-additive", SOURCE)
    expect(options).to_have_count(3)
    for key in ("ArrowDown", "Enter"):
        sentence.press(key)
    tab.await_plotly("before-map-additive", f"{SOURCE} !== arg", arg=words)
