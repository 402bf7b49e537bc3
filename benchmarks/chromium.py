"""The browser that pages are measured in: a Chromium of the machine, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
LACKING = "it needs playwright and a Chromium on the PATH."


def is_lacking() -> bool:
    """Say whether playwright or every Chromium is missing; see ``LACKING``."""
    return _path() is None or find_spec("playwright") is None


@contextmanager
def opened(*flags: str) -> Iterator[Browser]:
    """Open the browser, and close it at the end. flags: of Chromium's command line."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_path(), args=["--no-sandbox", *flags])
        try:
            yield browser
        finally:
            browser.close()


def _path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
