"""What first visitors would wait for, done while the server starts: Home, its stage, the runs."""

from __future__ import annotations

import gc
import inspect
import logging
import sys
import time
from importlib import import_module

from pages.ui.runs_access import CALM
from tfm_core.machine import WORKER_NICENESS, slowdown, slowness

MODULES = (
    "pages.home.hero",
    "pages.home.doors",
    "pages.home.page_map",
    "pages.home.preset_list",
    "pages.ui.frame",
    "pages.ui.run_list",
)
"""What the frame and Home import."""
LATER = ("pandas", "pages.compare.beside", "pages.compare.choice", "pages.compare.curves")
"""What the next pages import on top."""
_PAUSE = 0.002
"""Seconds behind each run that is read: who opens a page meanwhile comes first."""

_TURN = 0.0005
"""Seconds until another thread has its turn meanwhile: who opens the first page asks for a hundred
scripts, each of which several threads hand on.
"""

logger = logging.getLogger(__name__)


def prepare() -> None:
    """Prepare Home at once, and what comes behind it once its first visitor was served."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        warm()
        gc.freeze()  # what stays for good: to look through it stops everybody
        time.sleep(CALM)
        warm_rest()
        gc.freeze()
    finally:
        sys.setswitchinterval(before)


def warm() -> None:
    """Import what Home needs, read what it plays, and measure the machine, which it asks for."""
    try:
        for name in MODULES:
            import_module(name)
        inspect.stack()  # with its first element Streamlit does so, which reads all those sources
        import_module("pages.home.hero").warm()
    except Exception:
        logger.exception("Home could not be prepared; its first visitor will wait a little longer.")
    slowness()
    slowdown(niceness=WORKER_NICENESS)


def warm_rest() -> None:
    """Import what the next pages need, and read the runs that they list."""
    try:
        for name in LATER:
            import_module(name)
        read_ahead = import_module("pages.runs.filter").read_ahead
        for run in import_module("pages.ui.runs_access").store().list():
            time.sleep(_PAUSE)
            read_ahead(run)
    except Exception:
        logger.exception("The runs could not be read ahead; who lists them will wait for them.")
