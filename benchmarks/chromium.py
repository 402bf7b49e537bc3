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
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
LACKING = "it needs playwright and a Chromium on the PATH."


def is_lacking() -> bool:
    """Return whether playwright or every Chromium is missing; see ``LACKING``."""
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


def rests() -> bool:
    """Return whether the browser is idle: at first it loads pages of its own."""
    before = _spent()
    time.sleep(0.5)
    return _spent() - before < 0.02


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
