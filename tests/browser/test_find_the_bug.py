"""A round in the browser: the pair that comes with the app is asked about, named and read."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tfm_core.inspect.bugs.bugs import BUGS
from tfm_core.inspect.bugs.probes import PROBES

pytestmark = pytest.mark.browser


def test_a_hidden_bug_is_measured_named_and_read(open_tab: OpenTab) -> None:
    tab = open_tab("find-the-bug")
    bug, wrong = BUGS["one-head"], BUGS["no-norm"]
    expect(tab.main).not_to_contain_text(str(bug.label))
    tab.pick("Probe", str(PROBES[bug.probe].question))
    tab.button("Run the probe").click()
    expect(tab.main.get_by_text("≠").first).to_be_visible()
    for guess in (wrong, bug):
        tab.pick("What is wrong with the suspect?", str(guess.label))
        tab.button("Submit").click()
        if guess is wrong:
            expect(tab.main.get_by_text(f"Not “{wrong.label}”")).to_be_visible()
    expect(tab.main.get_by_text("Generated code")).to_be_visible()
    expect(tab.main).to_contain_text("Probes: 1 of 5 · wrong guesses: 1")
