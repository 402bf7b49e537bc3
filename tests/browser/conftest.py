"""A real server and a real Chromium; every test fails that leaves an error on a page.

Nothing moves by itself unless a test asks for motion: ``open_tab(reduced_motion="no-preference")``.
Without a Chromium these tests are skipped. A test that fails is run once more: what a press loses
in a page that is just being drawn anew, a second look tells from a fault. The summary lists it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser import server as servers
from tests.browser.server import AppServer
from tests.browser.tab import PATIENCE, Tab
from tests.pages import pseudo

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
TESTS_PER_TAB = 20
HAS_FAILED = pytest.StashKey[bool]()
SEEN = {"viewport", "color_scheme", "reduced_motion"}
"""What a tab that is there already can be told; anything else takes a new one."""
CALM: dict[str, Any] = {"viewport": DESKTOP, "reduced_motion": "reduce"}
"""Nothing moves by itself unless a test asks for ``reduced_motion="no-preference"``."""

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
    """The server of all tests, with a language that nobody speaks.

    It starts only where there is a browser to look at it.
    """
    folder = tmp_path_factory.mktemp("app")
    pseudo.write(folder / "languages")
    server = servers.start(folder, {"TFM_TEST_LANGUAGES_DIR": str(folder / "languages")})
    yield server
    server.close()


@pytest.fixture
def server(session_server: AppServer) -> Iterator[AppServer]:
    """The server, on which no run is left when the test has ended."""
    yield session_server
    session_server.forget_runs()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let each test of this folder have a second try."""
    if item.config.pluginmanager.hasplugin("rerunfailures"):
        item.add_marker(pytest.mark.flaky(reruns=1))


class Tabs:
    """The tabs of the browser: one that goes from test to test, and new ones for further people.

    A tab that has shown the app before opens a page in half the time: its scripts are compiled.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._kept: Page | None = None
        self._n_kept = 0  # how many tests have had it
        self._is_kept_in_use = False
        self._contexts: list[BrowserContext] = []

    def take(self, options: dict[str, Any]) -> Page:
        """Return a page for another person, who finds nothing of anybody before."""
        if self._is_kept_in_use or not options.keys() <= SEEN:
            context = self._new_context({**CALM, **options})
            self._contexts.append(context)
            return context.new_page()
        if self._kept is None or self._kept.is_closed():
            self._kept, self._n_kept = self._new_context({}).new_page(), 0
        self._n_kept += 1
        self._is_kept_in_use = True
        seen = {**CALM, **options}
        self._kept.set_viewport_size(seen["viewport"])
        self._kept.emulate_media(
            color_scheme=seen.get("color_scheme", "light"), reduced_motion=seen["reduced_motion"]
        )
        self._kept.mouse.move(0, 0)
        return self._kept

    def give_back(self, *, is_sound: bool) -> None:
        """Close the new tabs; empty the one that is kept, storage and cookies too.

        It is closed where something failed in it, and now and then: its memory grows.
        """
        for context in self._contexts:
            context.close()
        self._contexts.clear()
        kept = self._kept if self._is_kept_in_use else None
        self._is_kept_in_use = False
        if kept is None or kept.is_closed():
            return
        if not is_sound or self._n_kept == TESTS_PER_TAB:
            kept.context.close()
            return
        kept.evaluate("localStorage.clear(), sessionStorage.clear()")
        kept.goto("about:blank")
        kept.context.clear_cookies()

    def _new_context(self, options: dict[str, Any]) -> BrowserContext:
        context = self._browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        return context


@pytest.fixture(scope="package")
def browser_tabs(chromium: Browser) -> Tabs:
    """The tabs that the tests share."""
    return Tabs(chromium)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which test has failed: its page may not answer any more."""
    report = yield
    item.stash[HAS_FAILED] = item.stash.get(HAS_FAILED, False) or report.failed
    return report


@pytest.fixture
def open_tab(
    browser_tabs: Tabs, server: AppServer, request: pytest.FixtureRequest
) -> Iterator[OpenTab]:
    """Open a page of the app by its path, each time as another person.

    script: JavaScript that this tab runs before every page's own.

    Nothing may go wrong on any of the pages: no error element, nothing in the browser's console.
    """
    tabs: list[Tab] = []

    def open_it(path: str = "", *, script: str = "", **options: Any) -> Tab:
        tab = Tab(browser_tabs.take(options), server.url)
        if script:
            tab.page.add_init_script(script)
        tabs.append(tab)
        tab.goto(path)
        return tab

    yield open_it
    is_sound = not request.node.stash.get(HAS_FAILED, False)
    went_wrong = [
        sentence for tab in tabs for sentence in (tab.went_wrong() if is_sound else tab.problems)
    ]
    for tab in tabs:
        tab.leave()
    is_as_before = not any(tab.is_spoilt for tab in tabs)
    browser_tabs.give_back(is_sound=is_sound and is_as_before and not went_wrong)
    assert went_wrong == []
