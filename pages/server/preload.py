"""Work at startup that first visitors would wait for: imports, Home's stage, the list of runs."""

from __future__ import annotations

import gc
import inspect
import logging
import sys
import time
from importlib import import_module

from pages.app.runs import runs_access
from tfm_core.machine import WORKER_NICENESS, slowdown, slowness

MODULES = (
    "pages.home.page",
    "pages.app.navigation.frame",
    "pages.app.runs.run_list",
)
"""Imports of the frame and Home."""
LATER = ("pandas", "pages.compare.compare", "torch")
"""Further imports of the next pages."""
LAST = "torch._dynamo"
"""Torch imports it for the first convolution on the ``meta`` device: the Build page has one."""
WITH_DATA = ("recorded-korean", "recorded-captions")
"""Recorded runs whose data Knock-outs and Pictures to words generate at the first visit."""
_PAUSE = 0.002  # seconds after each run, so that visitors come first
_SWITCH_INTERVAL = 0.0005  # seconds: the first page needs a hundred scripts, sent by many threads

logger = logging.getLogger(__name__)


def prepare() -> None:
    """Prepare Home now, and the next pages after the first visitor was served."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        preload_home()
        gc.freeze()  # permanent objects: scanning them stops all threads
        time.sleep(runs_access.STARTUP_DELAY)
        preload_pages()
        gc.freeze()
    finally:
        sys.setswitchinterval(before)


def preload_home() -> None:
    """Import Home, read the run that it plays, and measure the machine."""
    try:
        for name in MODULES:
            import_module(name)
        inspect.stack()  # Streamlit does so for its first element, which reads all these sources
        import_module("pages.home.page").preload()
    except Exception:
        logger.exception("Home could not be prepared.")
    slowness()
    slowdown(niceness=WORKER_NICENESS)


def preload_pages() -> None:
    """Import the next pages, and read the runs and data that they show."""
    from tfm_core.inspect.attention import trained
    from tfm_core.inspect.knockouts import measure

    try:
        for name in LATER:
            import_module(name)
        preload = import_module("pages.runs.filter").preload
        store = runs_access.store()
        for run in store.list():
            time.sleep(_PAUSE)
            preload(run)
        for run_id in WITH_DATA:
            trained.data_of(store.get(run_id).experiment)
        run = store.get(WITH_DATA[0])  # of which Knock-outs shows what each head is worth
        for _done in measure.importances(run, "zero", measure.default_examples(run)):
            time.sleep(_PAUSE)
        import_module("pages.findings.page").preload()
        import_module(LAST)
    except Exception:
        logger.exception("The next pages could not be prepared.")
