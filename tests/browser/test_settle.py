"""What a test reads after ``settle`` is what the server answered to the last press."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser


def test_settle_waits_for_the_answer_to_every_press_before_it(open_tab: OpenTab) -> None:
    tab = open_tab("masks")
    options = tab.main.get_by_role("radiogroup").first.get_by_role("radio")
    expect(options.nth(2)).to_be_visible()
    number_of_options = options.count()
    for number in range(2 * number_of_options):
        first = options.nth(number % number_of_options)
        second = options.nth((number + 1) % number_of_options)
        first.click()
        second.click()  # asked for while the first may be on its way
        tab.settle()
        drawn = tab.drawn
        assert second.get_attribute("aria-checked") == "true"
        tab.settle()
        assert tab.drawn == drawn, "a script was still to end"
