"""Pictures of a user's own in a browser: classes are renamed, merged and left out in a table."""

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab
from tests.data.user_data.files import packed, png

pytestmark = pytest.mark.browser

ROW = 35  # pixels of a row of Streamlit's tables


def pets() -> bytes:
    rng = np.random.default_rng(0)
    return packed(
        {
            f"pets/{name}/{at}.png": png(rng.integers(0, 256, (28, 28)).astype(np.uint8))
            for name in ("cat", "dog", "kitten")
            for at in range(20)
        }
    )


def select(tab: Tab, row: int) -> None:
    """Select the cell with the name of a class, in the table as it is after the last change."""
    tab.settle()
    table = tab.main.locator("[data-testid=stDataFrame] .dvn-scroller").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    table.click(position={"x": box["width"] * 0.85, "y": ROW * (row + 1.5)})
    expect(tab.main.get_by_test_id(f"glide-cell-2-{row}")).to_have_attribute(
        "aria-selected", "true"
    )


def rename(tab: Tab, row: int, name: str) -> None:
    select(tab, row)
    tab.page.keyboard.press("Enter")
    tab.page.locator("#portal textarea").fill(name)
    tab.page.keyboard.press("Enter")


def read(tab: Tab) -> None:
    file = {"name": "pets.zip", "mimeType": "application/zip", "buffer": pets()}
    tab.main.locator("input[type=file]").set_input_files(file)
    expect(tab.main.get_by_text("60 pictures · 3 classes")).to_be_visible()
    tab.main.get_by_text("Rename, merge or drop classes").click()


def test_classes_are_renamed_and_merged_before_a_set_is_kept(open_tab: OpenTab) -> None:
    tab = open_tab("own-data?kind=pictures")
    read(tab)
    rename(tab, 2, "cat")
    expect(tab.main.get_by_text("60 pictures · 2 classes")).to_be_visible()
    rename(tab, 1, "wolf")
    expect(tab.main.get_by_text("wolf · 20")).to_be_visible()
    tab.button("Save data set").click()
    expect(tab.main.locator(".st-key-own-train-usual")).to_be_visible()
    for caption in ("wolf · 20", "cat · 40"):  # what was read goes when the kept set is there
        expect(tab.main.get_by_text(caption)).to_have_count(1)

    # a class whose name is emptied is left out and named
    tab.reload()
    read(tab)
    select(tab, 1)
    tab.page.keyboard.press("Delete")
    expect(tab.main.get_by_text("40 pictures · 2 classes")).to_be_visible()
    expect(tab.main.get_by_text("dog: This class has no name.")).to_be_visible()
