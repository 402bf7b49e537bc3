"""The app's entry: ``streamlit run app.py`` starts what works behind the pages and serves the rest.

Streamlit runs ``pages/frame.py``: with the main script inside ``pages/`` it discovers no pages by
itself, and a deep link on a cold server gets the frame too. With ``TFM_RECORDED_ONLY=1`` only files
of the recorded runs are served.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import anyio
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from pages.app.accounts import visitors
from pages.app.accounts.visitors import Cookies
from pages.app.navigation import ticks
from pages.app.runs import runs_access
from pages.components.addresses import hosts
from pages.components.files import joined
from pages.i18n import _
from pages.server import static_files, streamlit_internals
from pages.server.first_page import UNUSED, FirstPage, SecurityHeaders, page_html
from pages.server.guards import Hosts, NoMetrics, Uploads, allowed
from pages.server.preload import prepare
from pages.server.recorded_only import RecordedOnly
from pages.server.static_files import Bundles
from tfm_core import settings
from tfm_core.sentences import StudentError

PAGE = Path(st.__file__).parent / "static" / "index.html"
"""Streamlit's HTML, the same for every page."""
STYLE = joined("focus.css", "../app/style.css")

logger = logging.getLogger(__name__)


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Run the queue and the sweeps while the server runs."""
    print_addresses()
    await anyio.to_thread.run_sync(runs_access.sweeps)
    threading.Thread(target=prepare, daemon=True).start()
    try:
        yield
    finally:
        await anyio.to_thread.run_sync(runs_access.close_queue)


@asynccontextmanager
async def recorded_lifespan(app: Starlette) -> AsyncIterator[None]:
    """Serve the files of the recorded runs while the server runs."""
    async with recorded.written():
        print_addresses()
        yield


def on_script_error(error: Exception) -> bool:
    """Show a message in place of the traceback, which is in the server's log."""
    message = _("This page failed; see the server's log. Reload the page. Your runs keep training.")
    st.error(message, icon=":material/error:")
    return True


def prefixes() -> set[str]:
    """Return the paths below which the app answers: none, and its base path."""
    return {"", base_path()}


def print_addresses() -> None:
    """Print where the app is."""
    print(f"Watch a Transformer learn: {' and '.join(addresses())}", flush=True)


def addresses() -> list[str]:
    """Return the app's addresses: on this machine, and in its network if it listens there."""
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    tail = f":{st.get_option('server.port')}{base_path()}"
    return [f"{scheme}://{host}{tail}" for host in hosts()]


def base_path() -> str:
    """Return the path that the app is served below, such as ``"/some/base"``, or ``""``."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def check_settings() -> None:
    """Exit with a message if a TFM_ variable or [auth] is wrong."""
    try:
        config = settings.checked()
        for sentence in settings.unknown():
            print(_(sentence), file=sys.stderr)
        visitors.providers()
        if not config.recorded_only and find_spec("torch") is None:
            raise StudentError(
                "PyTorch is missing: pip install -r requirements.txt, or set TFM_RECORDED_ONLY=1."
            )
    except StudentError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


check_settings()
streamlit_internals.apply_patches(ticks.newly_done)
app: Starlette | st.App
if settings.read().recorded_only:
    recorded = RecordedOnly(UNUSED)
    app = Starlette(
        routes=recorded.routes(prefixes()),
        middleware=[Middleware(GZipMiddleware)],
        lifespan=recorded_lifespan,
    )
else:
    app = st.App(
        "pages/frame.py",
        lifespan=lifespan,
        routes=[
            *static_files.vendor_routes(prefixes()),
            *(Route(f"{prefix}/health", static_files.health) for prefix in prefixes()),
        ],
        middleware=[
            Middleware(Hosts, allowed=allowed()),
            Middleware(SecurityHeaders, page=page_html(PAGE, "")),
            Middleware(FirstPage, page=PAGE, style=STYLE),
            Middleware(Bundles, folder=PAGE.parent, prefixes=prefixes()),
            Middleware(NoMetrics),
            Middleware(Uploads),
            Middleware(Cookies, path=base_path() or "/"),
        ],
        on_script_error=on_script_error,
    )
