"""What people type is shown as they typed it; no page asks another host for anything."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.experiments import SHORT
from tests.browser.server import AppServer
from tests.browser.tab import Tab
from tests.browser.test_runs import rename, row

pytestmark = pytest.mark.browser

MARKS = r"1. *a* _b_ `c` [d](e) $f$ ~~g~~ <b>h</b> # :red[i] &lt; | {j} \k (v1.2-x)!"
NAME = "![i](http://x.example/y.png) <b> :red[x] $x$ [l](javascript:1)"
ADDRESSES = "http://x.example/y www.x.example a@x.example"
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


SHOWN = NAME.replace("://", "\u2060://")


def expect_no_marks(tab: Tab) -> None:
    """Look for what a name could have become: a link, a picture, bold letters."""
    linked = tab.page.locator("img[src*='y.png'], a[href^='javascript'], b:has-text(':red')")
    expect(linked.or_(tab.page.locator("a[href*='x.example']"))).to_have_count(0)


def test_names_are_shown_as_typed_and_nothing_is_asked_of_other_hosts(
    open_tab: OpenTab, server: AppServer
) -> None:
    marked = server.store.create(SHORT, name=MARKS, state="stopped")
    run = server.store.fork("recorded-korean", steps=1001)
    server.store.label(run.id, tags=["www.x.example"], note=ADDRESSES)
    tab = open_tab("runs")
    answered: list[str] = []
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.on("response", lambda response: answered.append(response.url))
    expect(row(tab, marked)).to_contain_text(MARKS)
    rename(tab, run, NAME)
    expect(row(tab, run)).to_contain_text(SHOWN)
    expect_no_marks(tab)
    for path in (f"compare?runs={run.id}", f"parameters?show=run&versus=run:{run.id}", "train?"):
        tab.goto(f"{path}&run={run.id}")
        expect(tab.page.get_by_text(SHOWN).first).to_be_visible()
        expect_no_marks(tab)
    expect(tab.main.locator(".live-figure .main-svg").first).to_be_visible()
    assert [url for url in asked if "x.example" in url] == []

    # a script that got in is refused what it could ask for
    assert tab.problems == []
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
    assert [url for url in answered if "x.example" in url] == []
    told = tab.page.evaluate("fetch('/_stcore/host-config').then(answer => answer.json())")
    assert told["allowedOrigins"] == []
    tab.problems.clear()  # the browser's complaints of what it refused
