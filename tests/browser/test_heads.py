"""Heads in a real browser: the animation plays, lines are pinned, pages work offline."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

KOREAN = "attention?run=recorded-korean"
LINES = f"{KOREAN}&view=lines&pin=q2"
PLAYS = r"/^Step \d{1,3}$/.test(step)"  # no step of it is long in sight: any but the last will do
COUNT_ASKED = """() => {
    window.asked = 0;
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (message) { window.asked += 1; send.call(this, message); };
}"""


def await_animation(tab: Tab, condition: str, arg: Any = None) -> Any:
    """Wait for a JavaScript condition of ``step``, ``line``, ``say``, ``press`` and ``arg``.

    The page itself looks, in every frame that it draws, so that no step of it is missed.
    """
    parts = [
        tab.main.locator(selector).element_handle() for selector in (".heads", ".say", ".line")
    ]
    return tab.page.wait_for_function(
        f"""([heads, said, verdict, arg]) => {{
            const step = heads.querySelector(".step").textContent;
            const [say, line] = [said, verdict].map(part => part.textContent);
            const press = name => heads.querySelector(`[aria-label='${{name}}']`).click();
            return {condition};
        }}""",
        arg=[*parts, arg],
    ).json_value()


def play(tab: Tab) -> None:
    tab.main.locator(".heads").get_by_role("button", name="Play the training").click()


def test_the_training_plays_in_the_browser_without_the_server(open_tab: OpenTab) -> None:
    tab = open_tab(LINES)
    tab.page.evaluate(COUNT_ASKED)
    play(tab)
    assert await_animation(tab, f"{PLAYS} && {{asked: window.asked}}") == {"asked": 0}
    expect(tab.main.locator(".heads .step")).to_have_text("Step 1,000")
    expect(tab.main.locator(".line")).to_contain_text("✓ right")
    tab.page.wait_for_function("() => window.asked > 0")  # at its end the page follows

    # where the animation is paused the page follows
    play(tab)
    await_animation(tab, f"{PLAYS} && (press('Pause'), true)")
    expect(tab.page).to_have_url(re.compile(r"\bstep=\d+\b"))
    expect(tab.main.locator(".heads .step")).not_to_have_text("Step 1,000")

    # words, answer and heading move with the slider
    title = tab.main.get_by_role("heading", name=re.compile(r"^Layer \d, head \d"))
    lines = tab.main.locator(".lines .say")
    slider = tab.main.get_by_role("slider", name="Training step")
    slider.press("End")
    expect(tab.main.locator(".line")).to_contain_text("✓ right")
    expect(tab.page).to_have_url(re.compile(r"\bstep=1000\b"))
    before, words = title.inner_text(), lines.inner_text()
    slider.press("Home")
    expect(tab.main.locator(".line")).to_contain_text("✗")
    expect(title).not_to_have_text(before)
    expect(lines).not_to_have_text(words)

    # a token is pinned with the keyboard and the link keeps it
    token = tab.main.get_by_role("button", name=re.compile("^2: writes .+, after .+"))
    expect(token).to_have_attribute("aria-pressed", "true")
    token.focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile(r"\bpin=q3\b"))
    expect(tab.main.locator(".lines .say")).to_contain_text(re.compile("^3: writes .+ · reads: "))
    tab.page.keyboard.press("Escape")
    expect(tab.page).not_to_have_url(re.compile(r"\bpin="))


def test_the_page_that_plays_works_without_a_server(open_tab: OpenTab, tmp_path: Path) -> None:
    tab = open_tab(f"{KOREAN}&deeper=take")
    with tab.page.expect_download() as download:
        tab.button("Animation (HTML, offline)").click()
    path = tmp_path / "heads.html"
    download.value.save_as(path)
    apart = tab.page.context.browser.new_context(offline=True)  # the app's tab still loads scripts
    apart.set_default_timeout(PATIENCE)
    page = apart.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(path.as_uri())
    expect(page.locator(".heads canvas")).to_have_count(12)
    page.get_by_role("gridcell", name="Layer 1, Head 3").click()
    expect(page.locator("#which")).to_have_text("Layer 1, head 3")
    page.locator(".lines text[data-side=q]").nth(1).hover()
    expect(page.locator(".lines .say")).to_contain_text(
        re.compile("^2: writes .+, after .+ · reads")
    )
    page.get_by_role("slider").press("Home")
    expect(page.locator(".heads .step")).to_have_text("Step 0")
    expect(page.locator(".heads .answer")).to_contain_text("✗ wrong")
    apart.close()
    assert errors == []
