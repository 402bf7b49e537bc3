"""The app's entry: ``streamlit run app.py``. Starts and stops what works behind the pages, serves
vendors' scripts, published runs and ``/health``.

The script that Streamlit runs is ``pages/frame.py``: with the main script inside ``pages/``,
Streamlit discovers no pages by itself, and a deep link on a cold server gets the frame too. With
``TFM_RECORDED_ONLY=1`` nothing of that is there: files of the recorded runs are served instead.
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
from starlette.routing import Route
from streamlit.components.v2 import manifest_scanner

from pages import health, vendors
from pages.bundles import Bundles
from pages.closed import Closed
from pages.components import reach
from pages.first_paint import FirstPaint, dressed
from pages.headers import UNUSED, Headers
from pages.held import name_held
from pages.hosts import Hosts, allowed
from pages.i18n import _
from pages.left import forget_left
from pages.published import Published
from pages.recorded_only import RecordedOnly
from pages.sending import send_at_once
from pages.ui import login_setup, publisher, runs_access, style
from pages.ui.cookies import Cookies
from pages.uploads import Uploads
from pages.warm import prepare
from pages.wrong_values import forget_wrong_values
from tfm_core.publish.shelf import shelf
from tfm_core.runs import settings
from tfm_core.sentences import StudentError

PAGE = Path(st.__file__).parent / "static" / "index.html"
"""What Streamlit answers whatever page is asked for."""

logger = logging.getLogger(__name__)


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Keep the queue of runs, and the sweeps, working for as long as the server does."""
    say_addresses()
    await anyio.to_thread.run_sync(runs_access.sweeps)
    await anyio.to_thread.run_sync(publisher.publisher)
    threading.Thread(target=prepare, daemon=True).start()
    try:
        yield
    finally:
        await anyio.to_thread.run_sync(publisher.close)
        await anyio.to_thread.run_sync(runs_access.close_queue)


@asynccontextmanager
async def recorded_lifespan(app: Starlette) -> AsyncIterator[None]:
    """Keep the files of the recorded runs for as long as the server works."""
    async with recorded.written():
        say_addresses()
        yield


def on_script_error(error: Exception) -> bool:
    """Say on the page that something went wrong; the traceback is in the server's log."""
    st.error(
        _(
            "Something went wrong while drawing this page, and the server's log says what. "
            "Reload the page; runs that are training go on."
        ),
        icon=":material/error:",
    )
    return True


def health_routes() -> list[Route]:
    """Tell load balancers at /health how the server does, below the app's base path too."""
    return [Route(f"{prefix}/health", health.answer) for prefix in prefixes()]


def prefixes() -> set[str]:
    """Return the paths that the app may be asked for at: none, and its base path."""
    return {"", base_path()}


def say_addresses() -> None:
    """Say in the terminal where the app is."""
    print(f"Watch a Transformer learn: {' and '.join(addresses())}", flush=True)


def addresses() -> list[str]:
    """Return the app's addresses: on this machine, and in its network where it listens there."""
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    tail = f":{st.get_option('server.port')}{base_path()}"
    return [f"{scheme}://{host}{tail}" for host in reach.hosts()]


def base_path() -> str:
    """Return the path that the app is served below, such as ``"/some/base"``, or ``""``."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def check_settings() -> None:
    """Say in a sentence what is wrong with a TFM_ variable or [auth], and end before all begins."""
    try:
        said = settings.checked()
        login_setup.check(said)
        if not said.recorded_only and find_spec("torch") is None:
            raise StudentError(
                "PyTorch is not installed: pip install -r requirements.txt brings it, and "
                "TFM_RECORDED_ONLY=1 shows the recorded runs without it."
            )
    except StudentError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


check_settings()
send_at_once()
name_held()
forget_left()
forget_wrong_values()
# Ours are registered where they are defined; for those of others Streamlit would read the metadata
# of every package that is installed, before it answers anybody.
manifest_scanner.scan_component_manifests = lambda max_workers=None: []
app: Starlette | st.App
if settings.read().recorded_only:
    recorded = RecordedOnly(UNUSED)
    app = Starlette(routes=recorded.routes(prefixes()), lifespan=recorded_lifespan)
else:
    app = st.App(
        "pages/frame.py",
        lifespan=lifespan,
        routes=[*vendors.routes(prefixes()), *health_routes()],
        middleware=[
            Middleware(Hosts, allowed=allowed()),
            Middleware(
                Published,
                shelf=shelf(settings.read().runs_dir.resolve()),
                prefixes=prefixes(),
                unused=UNUSED,
            ),
            Middleware(Headers, page=dressed(PAGE, "")),
            Middleware(FirstPaint, page=PAGE, style=style.RULES),
            Middleware(Bundles, folder=PAGE.parent, prefixes=prefixes()),
            Middleware(Closed),
            Middleware(Uploads),
            Middleware(Cookies, path=base_path() or "/"),
        ],
        on_script_error=on_script_error,
    )
