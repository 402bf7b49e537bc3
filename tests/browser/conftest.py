"""A real server and a real Chromium; every test fails that leaves an error on a page.

Without a Chromium these tests are skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser import server as servers
from tests.browser.server import AppServer
from tests.browser.tab import Tab

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = {"width": 1440, "height": 900}
PATIENCE = 120_000  # milliseconds: for slow machines; who does not fail does not wait so long

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The browser; each test opens contexts of its own in it.

    It ends with the tests of this folder: its event loop would get in the way of others'.
    """
    path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if path is None:
        pytest.skip(f"There is no Chromium on the PATH (looked for {', '.join(CHROMIUMS)}).")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def session_server(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppServer]:
    """The server of all tests; it starts only where there is a browser to look at it."""
    server = servers.start(tmp_path_factory.mktemp("app"), {})
    yield server
    server.close()


@pytest.fixture
def server(session_server: AppServer) -> Iterator[AppServer]:
    """The server, on which no run is left when the test has ended."""
    yield session_server
    session_server.forget_runs()


@pytest.fixture
def open_tab(chromium: Browser, server: AppServer) -> Iterator[OpenTab]:
    """Open a page of the app by its path, each time as another person unless told the context.

    Nothing may go wrong on any of the pages: no error element, nothing in the browser's console.
    """
    contexts: list[BrowserContext] = []
    tabs: list[Tab] = []

    def open_it(path: str = "", *, context: BrowserContext | None = None, **options: Any) -> Tab:
        if context is None:
            context = chromium.new_context(**{"viewport": DESKTOP, **options})
            context.set_default_timeout(PATIENCE)
            contexts.append(context)
        tab = Tab(context.new_page(), server.url)
        tabs.append(tab)
        tab.goto(path)
        return tab

    yield open_it
    went_wrong = [sentence for tab in tabs for sentence in tab.went_wrong()]
    for context in contexts:
        context.close()
    assert went_wrong == []
