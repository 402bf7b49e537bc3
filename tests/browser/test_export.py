"""The exported page in a real Chromium without a network: drawn, and hover says exact values."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.export import map_svg, page
from tfm_core.plots.heads.attention import head_map

pytestmark = pytest.mark.browser

TOKENS = ("<bos>", "학교", "에")
WEIGHTS = np.array([[0.25, 0.5, 0.25], [0.125, 0.75, 0.125], [0.0, 0.0, 1.0]])


@pytest.fixture
def tab(chromium):
    """A tab without a network, which must not ask for anything either."""
    context = chromium.new_context(offline=True, viewport={"width": 900, "height": 700})
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    wrong, asked = [], []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    yield tab
    context.close()
    assert wrong == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_an_exported_page_answers_the_pointer_and_a_picture_is_drawn(tab, tmp_path):
    for theme in ("light", "dark"):
        expect_page(tab, tmp_path, theme)
    file = tmp_path / "head.svg"
    file.write_bytes(map_svg(MapView(WEIGHTS, TOKENS, TOKENS), title="Layer 1, head 1"))
    tab.goto(file.as_uri())
    expect(tab.locator("rect")).to_have_count(10)  # the paper and nine cells
    expect(tab.locator("text", has_text="학교")).to_have_count(2)


def expect_page(tab, folder, theme):
    file = folder / f"{theme}.html"
    figure = head_map(MapView(WEIGHTS, TOKENS, TOKENS), theme=theme)
    file.write_bytes(page(figure, title="Layer 1, head 1", words="Look for rows.", theme=theme))
    tab.goto(file.as_uri())
    expect(tab.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    expect(tab.locator(".ytick text").first).to_have_text("<bos>")
    tab.locator(".nsewdrag").first.hover()
    hover = tab.locator(".hoverlayer .hovertext")
    expect(hover).to_have_count(1)
    assert re.search(r"query 2: 학교key 2: 학교weight 0\.7500", hover.text_content())
