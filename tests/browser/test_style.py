"""What the rules of style do to Streamlit's own parts."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

BLUES = {"light": "rgb(31, 106, 168)", "dark": "rgb(109, 179, 234)"}
GREYS = {"light": "rgb(94, 100, 107)", "dark": "rgb(163, 168, 176)"}
COLOUR = "node => { const look = getComputedStyle(node); return [look.color, look.opacity]; }"


def test_chosen_options_values_and_captions_can_be_read(open_tab: OpenTab) -> None:
    tab = open_tab("words")
    for theme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=theme)
        for where, colour in {
            "[role=radio][aria-checked=true] p": BLUES[theme],
            "[data-testid=stSliderThumbValue]": BLUES[theme],
            "[data-testid=stCaptionContainer]": GREYS[theme],
        }.items():
            expect(tab.main.locator(where).first).to_have_css("color", colour)
            assert tab.main.locator(where).first.evaluate(COLOUR) == [colour, "1"], where
