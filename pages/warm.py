"""What the first visitor would wait for, done while the server starts: Home and what it plays."""

from __future__ import annotations

import logging
from importlib import import_module

from tfm_core.machine import slowness

MODULES = (
    "pages.home.hero",
    "pages.home.doors",
    "pages.home.page_map",
    "pages.home.preset_list",
    "pages.ui.frame",
    "pages.ui.run_list",
)
"""What the frame and Home import; pandas and plotly alone take half a second."""

logger = logging.getLogger(__name__)


def warm() -> None:
    """Import what Home needs, read what it plays, and measure the machine, which it asks for."""
    try:
        for name in MODULES:
            import_module(name)
        import_module("pages.home.hero").warm()
    except Exception:
        logger.exception("Home could not be prepared; its first visitor will wait a little longer.")
    slowness()
