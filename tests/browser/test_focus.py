"""Keyboard and forced colours: what has the focus, and what is chosen, can be seen."""

import io
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import PATIENCE

pytestmark = pytest.mark.browser

N_STOPS = 45
"""Of the Tab key; what a list repeats is compared once."""
MIN_PIXELS = 60
"""Of at least 3 to 1: a line around a mark of 16 pixels."""
AROUND = 8
FOCUSED = """() => {
    let node = document.activeElement;
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
    window.focused = node;
    const { x, y, width, height } = node.getBoundingClientRect();
    const kind = [node.tagName, node.className, node.parentElement?.className,
        node.closest("[data-testid]")?.dataset.testid].join(" ");
    return { kind, isNothing: node === document.body, box: [x, y, x + width, y + height] };
}"""


def picture(page: Page, box: list[float]) -> npt.NDArray[Any]:
    """Return the luminance of each pixel of a box and around it, 0 to 1 (WCAG 2.2)."""
    size = page.viewport_size
    assert size is not None
    left, top = (max(0, part - AROUND) for part in box[:2])
    right, bottom = min(size["width"], box[2] + AROUND), min(size["height"], box[3] + AROUND)
    shot = page.screenshot(
        clip={"x": left, "y": top, "width": right - left, "height": bottom - top}
    )
    values = np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))


def n_changed(page: Page, box: list[float]) -> int:
    """Return how many pixels have a contrast of 3 to 1 with what they are without the focus."""
    one = picture(page, box)
    page.evaluate("() => window.focused.blur()")
    other = picture(page, box)
    page.evaluate("() => window.focused.focus({ preventScroll: true, focusVisible: true })")
    contrast = (np.maximum(one, other) + 0.05) / (np.minimum(one, other) + 0.05)
    return int((contrast >= 3).sum())


def expect_seen(page: Page) -> None:
    """Wait until what has the focus shows it: some fade in."""
    end = time.monotonic() + PATIENCE / 1000
    while n_changed(page, (found := page.evaluate(FOCUSED))["box"]) < MIN_PIXELS:
        assert time.monotonic() < end, found


def test_whatever_has_the_focus_or_is_chosen_can_be_seen(open_tab: OpenTab) -> None:
    tab = open_tab("masks", viewport={"width": 1280, "height": 720}, color_scheme="dark")
    expect(tab.main.get_by_role("heading", level=1)).to_be_visible()
    tab.settle()
    seen = set()
    for _stop in range(N_STOPS):
        tab.page.keyboard.press("Tab")
        found = tab.page.evaluate(FOCUSED)
        if found["isNothing"]:
            break
        if found["kind"] in seen:
            continue
        seen.add(found["kind"])
        expect_seen(tab.page)
    assert len(seen) > 5

    tab.page.emulate_media(forced_colors="active")
    outline = "node => getComputedStyle(node).outlineStyle"
    assert tab.main.locator("button[data-selected]").first.evaluate(outline) == "solid"
    others = tab.main.locator("button[role=radio]:not([data-selected])")
    assert others.first.evaluate(outline) == "none"

    tab.page.emulate_media(color_scheme="dark", forced_colors="none")
    tab.goto("class")
    tab.main.get_by_label("Teacher’s key").focus()
    expect_seen(tab.page)
