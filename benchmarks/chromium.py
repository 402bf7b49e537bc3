"""The browser that pages are measured in: a Chromium of the machine, driven by playwright."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
LACKING = "it needs playwright and a Chromium on the PATH."


def is_lacking() -> bool:
    """Return whether playwright or every Chromium is missing; see ``LACKING``."""
    return _path() is None or find_spec("playwright") is None


DEEP = """const deep = (selector, root = document) => {
    const found = [...root.querySelectorAll(selector)];
    for (const part of root.querySelectorAll('*')) {
        if (part.shadowRoot) found.push(...deep(selector, part.shadowRoot));
    }
    return found;
};
window.deep = deep;
"""
"""``deep(selector)`` looks into shadow roots, too: components stand in them."""


def visit(browser: Browser, url: str, *, size: tuple[int, int]) -> Page:
    """Open a page of the app in a new session, and wait until its script has ended."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height})
    context.add_init_script(DEEP)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(url)
    page.locator("[data-testid=stMain] h1").first.wait_for()
    page.locator("[data-test-script-state=notRunning]").first.wait_for()
    return page


@contextmanager
def opened() -> Iterator[Browser]:
    """Open the browser, and close it at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_path(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def rests() -> bool:
    """Return whether the browser is idle: at first it loads pages of its own."""
    before = _spent()
    time.sleep(0.5)
    return _spent() - before < 0.1


def _spent() -> float:
    """Return the seconds of all processors that our children, all of them, have used."""
    spent = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = child.cpu_times()
            spent += times.user + times.system
    return spent


def _path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
