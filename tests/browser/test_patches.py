"""Attention of a Vision Transformer: over the patches of a digit, and of one's own digit."""

import io
import re

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

DIGITS = "attention?run=recorded-digits"
PATCHES = ".st-key-attention-patches .js-plotly-plot"
MAP = "attention-map"
PHONE = {"width": 390, "height": 844}


def one() -> bytes:
    """A PNG of a 1, dark on white as on paper, larger than the model's pictures."""
    picture = Image.new("L", (140, 140), 255)
    ImageDraw.Draw(picture).line([(74, 20), (66, 120)], fill=0, width=14)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def upload(tab: Tab, content: bytes) -> None:
    tab.main.locator("input[type=file]").set_input_files(
        {"name": "one.png", "mimeType": "image/png", "buffer": content}
    )


def draw(tab: Tab, *places: tuple[float, float]) -> None:
    """Draw through places of the pad."""
    pad = tab.main.locator(".drawing-board canvas")
    first, *later = places
    pad.hover(position={"x": first[0], "y": first[1]})
    tab.page.mouse.down()
    for x, y in later:
        pad.hover(position={"x": x, "y": y})
    tab.page.mouse.up()


def test_a_patch_is_chosen_and_a_digit_of_ones_own_is_read_whichever_way_it_comes(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(DIGITS)
    expect(tab.main.get_by_text("Mean attention per patch")).to_be_visible()
    tab.pick("Attention of which patch", "Patch 2,3")
    expect(tab.main.get_by_text("Does the outlined patch look")).to_be_visible()
    expect(tab.page).to_have_url(re.compile(r"patch=2(%2C|,)3"))
    patches = tab.main.locator(PATCHES)
    expect(patches).to_have_attribute("tabindex", "0")  # it listens to keys
    patches.press("ArrowRight")
    patches.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"patch=1(%2C|,)2"))

    # a digit of one's own is uploaded
    tab.button("Your own").click()
    expect(tab.main.get_by_text("Upload a picture")).to_be_visible()
    expect(patches).to_have_count(0)
    upload(tab, one())
    expect(tab.said("Model")).to_have_text(re.compile(r"^1, with [\d.]+%$"))
    expect(patches).to_be_visible()

    # what is drawn later is read in its place, and cleared
    picture = tab.main.get_by_test_id("stImage").locator("img").first
    read = picture.get_attribute("src") or ""
    draw(tab, (60, 60), (200, 60), (120, 220))
    expect(picture).not_to_have_attribute("src", read)
    tab.main.get_by_role("button", name="Clear", exact=True).click()
    expect(patches).to_have_count(0)
    draw(tab, (145, 40), *((144 - down, 65 + 25 * down) for down in range(8)))
    expect(tab.said("Model")).to_have_text(re.compile(r"^1, with [\d.]+%$"))

    # a square map leaves no empty room: the height that it does not take goes back to the page
    tab.page.set_viewport_size(PHONE)
    tab.await_plotly(MAP, "node._fullLayout._size.h - node._fullLayout.yaxis._length < 100")
    tab.await_plotly(MAP, "node._fullLayout._size.w - node._fullLayout.xaxis._length < 25")

    # a file that is no picture is refused in a sentence
    upload(tab, b"no picture at all")
    expect(tab.main.get_by_role("alert")).to_contain_text(re.compile(r"picture.*\.", re.S))
    expect(patches).to_have_count(0)
