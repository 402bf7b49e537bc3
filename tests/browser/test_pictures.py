"""Attention of a Vision Transformer: over the patches of a digit, and of one's own digit."""

import io
import re

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab

pytestmark = pytest.mark.browser

DIGITS = "attention?run=recorded-digits"
PATCHES = ".st-key-attention-patches .js-plotly-plot"


def one() -> bytes:
    """A PNG of a 1, dark on white as on paper, larger than the model's pictures."""
    picture = Image.new("L", (140, 140), 255)
    ImageDraw.Draw(picture).line([(74, 20), (66, 120)], fill=0, width=14)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def test_a_patch_asks_and_a_digit_of_ones_own_is_read_whichever_way_it_comes(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(DIGITS)
    expect(tab.main.get_by_text("Mean attention per patch")).to_be_visible()
    tab.pick("Attention of which patch", "Patch 2,3")
    expect(tab.main.get_by_text("Where the outlined patch looks")).to_be_visible()
    expect(tab.page).to_have_url(re.compile(r"patch=2(%2C|,)3"))
    picture = tab.main.locator(PATCHES)
    expect(picture).to_have_attribute("tabindex", "0")  # it listens to keys
    picture.press("ArrowRight")
    picture.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"patch=1(%2C|,)2"))

    # a digit of one's own is uploaded
    tab.choose_behind("Your own")
    expect(tab.main.get_by_text("Upload a picture")).to_be_visible()
    expect(tab.main.locator(PATCHES)).to_have_count(0)
    tab.main.locator("input[type=file]").set_input_files(
        {"name": "one.png", "mimeType": "image/png", "buffer": one()}
    )
    expect(tab.said("Model")).to_have_text(re.compile(r"^1, with [\d.]+ %$"))
    expect(tab.main.locator(PATCHES)).to_be_visible()

    # the last thing done is read
    tab.main.locator("input[type=file]").set_input_files(
        {"name": "one.png", "mimeType": "image/png", "buffer": one()}
    )
    expect(tab.said("Model")).to_have_text(re.compile(r"^1, with [\d.]+ %$"))
    read = tab.main.get_by_test_id("stImage").locator("img").first.get_attribute("src")
    pad = tab.main.locator(".pad canvas")
    pad.hover(position={"x": 60, "y": 60})
    tab.page.mouse.down()
    for place in ((200, 60), (120, 220)):
        pad.hover(position={"x": place[0], "y": place[1]})
    tab.page.mouse.up()
    picture = tab.main.get_by_test_id("stImage").locator("img").first
    expect(picture).not_to_have_attribute("src", read)
    tab.main.get_by_role("button", name="Clear", exact=True).click()
    expect(tab.main.locator(PATCHES)).to_have_count(0)

    # a drawn digit is read and cleared
    pad = tab.main.locator(".pad canvas")
    pad.hover(position={"x": 145, "y": 40})
    tab.page.mouse.down()
    for down in range(8):
        pad.hover(position={"x": 144 - down, "y": 65 + 25 * down})
    tab.page.mouse.up()
    expect(tab.said("Model")).to_have_text(re.compile(r"^1, with [\d.]+ %$"))
    tab.main.get_by_role("button", name="Clear", exact=True).click()
    expect(tab.main.locator(PATCHES)).to_have_count(0)

    # a file that is no picture is refused in a sentence
    tab.main.locator("input[type=file]").set_input_files(
        {"name": "one.png", "mimeType": "image/png", "buffer": b"no picture at all"}
    )
    expect(tab.main.get_by_role("alert")).to_contain_text(re.compile(r"picture.*\.", re.S))
    expect(tab.main.locator(PATCHES)).to_have_count(0)
