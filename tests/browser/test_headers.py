"""The headers in a real browser: it keeps to them. ``test_every_page`` shows that all is drawn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP, PATIENCE
from tests.browser.server import AppServer
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

REFUSED = """async () => {
    const refused = [];
    document.addEventListener("securitypolicyviolation", (event) => refused.push(
        `${event.effectiveDirective} ${event.blockedURI}`));
    const asked = [
        ["img", {src: "http://x.example/y.png"}],
        ["script", {src: "http://x.example/z.js"}],
        ["script", {textContent: "window.inlineRan = true"}],
        ["iframe", {src: "http://x.example/"}],
        ["link", {rel: "stylesheet", href: "http://x.example/s.css"}],
    ];
    for (const [kind, values] of asked) {
        document.head.appendChild(Object.assign(document.createElement(kind), values));
    }
    fetch("http://x.example/").catch(() => {});
    setTimeout("window.evalRan = true");
    for (let look = 0; look < 3000 && refused.length < 7; look += 1) {
        await new Promise((done) => setTimeout(done, 10));
    }
    return refused.map((one) => one.replace("http://x.example", "").trim()).sort();
}"""
"""JavaScript: what a page under attack could ask for; what the browser refused of it."""


@pytest.fixture
def tab(chromium: Browser, server: AppServer) -> Iterator[Tab]:
    """A tab whose console may complain."""
    context = chromium.new_context(viewport=DESKTOP)
    context.set_default_timeout(PATIENCE)
    yield Tab(context.new_page(), server.url)
    context.close()


def test_a_page_runs_no_foreign_script_and_asks_no_other_host(tab: Tab) -> None:
    tab.goto("train?run=recorded-korean")
    expect(tab.main.locator(".live-figure .main-svg").first).to_be_visible()
    assert tab.problems == []
    asked: list[str] = []
    tab.page.on("response", lambda response: asked.append(response.url))
    assert tab.page.evaluate(REFUSED) == [
        "connect-src /",
        "frame-src",
        "img-src /y.png",
        "script-src eval",
        "script-src-elem /z.js",
        "script-src-elem inline",
        "style-src-elem /s.css",
    ]
    assert tab.page.evaluate("[window.inlineRan, window.evalRan]") == [None, None]
    assert [url for url in asked if "x.example" in url] == []
    told = tab.page.evaluate("fetch('/_stcore/host-config').then(answer => answer.json())")
    assert told["allowedOrigins"] == []
