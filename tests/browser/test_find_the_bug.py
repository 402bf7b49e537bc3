"""A whole round in the browser: a pair is trained by one press, asked, named and read."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tfm_core.inspect.bugs.bugs import BUGS, bug_of
from tfm_core.inspect.bugs.probes import PROBES

pytestmark = pytest.mark.browser


def test_a_hidden_bug_is_trained_measured_named_and_read(
    open_tab: OpenTab, server: AppServer
) -> None:
    tab = open_tab("find-the-bug")
    tab.main.get_by_role("button", name=re.compile("Train a new pair")).click()
    tab.page.wait_for_url(re.compile(r"pair=\w+\.\w+"))
    store = server.store
    pair = re.search(r"pair=(\w+)\.(\w+)", tab.page.url)
    assert pair is not None
    healthy, twin = (store.get(one) for one in pair.groups())
    bug = bug_of(healthy.experiment, twin.experiment)
    assert bug is not None
    assert bug.level == 1
    expect(tab.main).not_to_contain_text(bug.label)
    # while the page is redrawn, the disabled button of before may stand beside it
    probe = tab.main.get_by_role("button", name="Run the probe", disabled=False)
    expect(probe).to_be_visible()
    tab.await_rest(500)  # the training has ended, so the page is redrawn once more
    tab.main.get_by_role("combobox", name="Probe", disabled=False).click()
    tab.page.get_by_role("option", name=str(PROBES[bug.probe].question), exact=True).click()
    probe.click()
    expect(tab.main.get_by_text("≠").first).to_be_visible()
    wrong = BUGS["no-norm"]
    for guess in (wrong, bug):
        tab.main.get_by_role("combobox", name="What is wrong with the suspect?").click()
        tab.page.get_by_role("option", name=str(guess.label), exact=True).click()
        tab.main.get_by_role("button", name="Submit").click()
        if guess is wrong:
            expect(tab.main.get_by_text(f"Not “{wrong.label}”")).to_be_visible()
    expect(tab.main.get_by_text("Generated code")).to_be_visible()
    expect(tab.main).to_contain_text("Probes: 1 of 5 · wrong guesses: 1")
