"""The stage in a real browser: one screen, and one scrubber that moves all of it."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

PROJECTOR = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 844}
SHOWN = (".moment", ".figures", ".answers .row", ".head .what")
"""What says something else at another step."""


def stage(tab: Tab) -> Locator:
    """The stage, once its heads are drawn."""
    found = tab.main.locator(".stage")
    expect(found.locator(".head canvas").first).to_be_visible()
    return found


def scrubber(of: Locator) -> Locator:
    return of.get_by_role("slider", name="Training step")


def shown(of: Locator) -> dict[str, object]:
    """Return all that depends on the step: words, and the pixels of every map and curve."""
    words = {name: of.locator(name).all_inner_texts() for name in SHOWN}
    for name in (".head canvas", ".chart canvas"):
        words[name] = of.locator(name).evaluate_all("all => all.map(one => one.toDataURL())")
    return words


def at_step(of: Locator, step: str) -> dict[str, object]:
    expect(scrubber(of)).to_have_attribute("aria-valuetext", re.compile(rf"^step {step}\."))
    of.page.evaluate("() => new Promise(done => requestAnimationFrame(() => done()))")
    return shown(of)


def expect_names_and_roles(of: Locator) -> None:
    expect(of.get_by_text("Labels average 2 examples.")).to_be_visible()
    expect(of.locator(".what", has_text="aligns").first).to_be_visible()
    expect(of.locator(".head .title").last).to_have_text("Layer 3, head 4")


def test_a_run_is_on_one_screen_and_moves_with_the_scrubber(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=recorded-korean", viewport=PROJECTOR)
    found = stage(tab)
    for name in (".figures", ".chart canvas", ".head canvas", ".rows", ".moment", ".foot"):
        for part in found.locator(name).all():
            box = part.bounding_box()
            assert box is not None
            assert box["y"] > 0, name
            assert box["y"] + box["height"] <= PROJECTOR["height"], name
    expect(tab.main.get_by_text("Step 1,000 of 1,000").first).to_be_in_viewport()
    end = at_step(found, "1,000")
    scrubber(found).press("Home")
    start = at_step(found, "0")
    for name, before in end.items():
        assert start[name] != before, name
    scrubber(found).press("ArrowRight")
    assert at_step(found, "1")[".answers .row"] != start[".answers .row"]
    for key in ("End", "ArrowLeft", "ArrowLeft", " "):  # the last one plays to the end
        scrubber(found).press(key)
    expect(found.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    assert at_step(found, "1,000") == end

    # maps between two snapshots are mixed where that is wanted, and said to be
    between = found.get_by_text("Interpolated")
    scrubber(found).evaluate(
        "one => { one.value = 0.503; one.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(between).to_have_css("opacity", "0")
    kept = shown(found)[".head canvas"]
    found.get_by_role("button", name="Smooth").click()
    expect(between).to_have_class("between now")
    assert shown(found)[".head canvas"] != kept


def test_a_head_is_shown_large_and_on_a_phone_with_its_words(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=recorded-korean", viewport=PROJECTOR)
    found = stage(tab)
    expect_names_and_roles(found)
    lead = found.locator(".lead")
    expect(lead).to_contain_text("Layer 3, head 3")
    words = lead.locator("canvas").evaluate("one => one.toDataURL()")
    found.get_by_role("button", name="Glosses").click()
    expect(found.locator(".answers .t small")).to_have_count(0)
    assert lead.locator("canvas").evaluate("one => one.toDataURL()") != words
    found.locator(".head").nth(2).click()
    expect(lead).to_contain_text("Layer 1, head 3")
    lead.click()
    expect(found.get_by_role("heading", name="Layer 1, head 3")).to_be_visible()
    found.get_by_role("button", name="Back to all heads").press("Escape")
    expect(found.locator(".large")).to_be_hidden()

    # on a phone, too; a head that is tapped is shown with its words
    tab.page.set_viewport_size(PHONE)
    expect_names_and_roles(found)
    head = found.locator(".head").nth(9)
    head.scroll_into_view_if_needed()
    expect(scrubber(found)).to_be_in_viewport()
    head.click()
    expect(lead).to_contain_text("Layer 3, head 2")
    expect(found.locator(".lead .title")).to_be_in_viewport()
    expect(scrubber(found)).to_be_in_viewport()

    # another example and another kind of attention
    row = found.locator(".answers .row").nth(1)
    row.click()
    expect(found.locator(".which")).to_contain_text("Example 2")
    expect(row).to_have_attribute("aria-pressed", "true")
    found.get_by_role("combobox", name="Attention").select_option(label="Encoder self-attention")
    expect(found.locator(".head").first).to_be_visible()
    expect(found.locator(".which")).to_contain_text("Example 2")


def test_rows_of_maps_have_their_words_and_no_browser_translates_a_run(open_tab: OpenTab) -> None:
    tab = open_tab("train?run=recorded-causal-mask")
    found = stage(tab)
    axes, first = found.locator("canvas.axes"), found.locator(".head canvas").first
    expect(axes).to_be_visible()
    expect(found.get_by_text("Rows: target token written. Columns: source token.")).to_be_visible()
    outer, inner = axes.bounding_box(), first.bounding_box()
    assert outer is not None
    assert inner is not None
    assert outer["x"] + 12 < inner["x"]
    assert outer["y"] + 12 < inner["y"]
    assert outer["y"] + outer["height"] >= inner["y"] + inner["height"]
    for selector in (".stMarkdownBadge", ".main-svg"):
        part = tab.page.locator(selector).first
        expect(part).to_be_visible()
        expect(part).to_have_attribute("translate", "no")
