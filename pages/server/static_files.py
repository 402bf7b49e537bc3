"""What the server answers besides pages: Streamlit's files, vendors' scripts, and its health."""

from __future__ import annotations

import gzip
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

import anyio
import plotly
import streamlit as st
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.app.runs import runs_access
from pages.i18n import PAGES_DIR
from tfm_core.runs.queue.run_queue import Checkup, Health

IMMUTABLE = "public, max-age=31536000, immutable"
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}
_COMPRESSED = {".woff2"}
_LOCAL = {"127.0.0.1", "::1"}


class Bundles:
    """Serve Streamlit's scripts, styles and fonts from memory, gzipped for other machines.

    Streamlit sends a hundred uncompressed files, each through threads that wait while pages are
    drawn. Their names contain hashes, so browsers may keep them for good.
    """

    def __init__(self, app: ASGIApp, *, folder: Path, prefixes: Collection[str]) -> None:
        """Wrap an app. folder: contains ``static``, served at /static/ below each prefix."""
        self.app = app
        self._files = {
            f"{prefix}/static/{path.parent.name}/{path.name}": path
            for path in folder.glob("static/*/*")
            if path.suffix in MEDIA_TYPES
            for prefix in prefixes
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        path = self._files.get(scope["path"]) if is_get else None
        response = None if path is None else await _bundle(path, scope)
        await (response or self.app)(scope, receive, send)


async def _bundle(path: Path, scope: Scope) -> Response | None:
    """Return the response; None for a range of a file or one that no longer exists."""
    request = Headers(scope=scope)
    if "range" in request:
        return None
    tag = f'"{path.name}"'
    headers = {"Cache-Control": IMMUTABLE, "ETag": tag, "Vary": "Accept-Encoding"}
    if request.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    try:
        client = scope.get("client")  # a browser on this machine gains nothing by gzip
        is_remote = client is None or client[0] not in _LOCAL or "x-forwarded-for" in request
        accepts_gzip = "gzip" in request.get("accept-encoding", "")
        if is_remote and accepts_gzip and path.suffix not in _COMPRESSED:
            body = await anyio.to_thread.run_sync(_gzipped, path)
            headers["Content-Encoding"] = "gzip"
        else:
            body = path.read_bytes()
    except OSError:
        return None
    return Response(body, media_type=MEDIA_TYPES[path.suffix], headers=headers)


@lru_cache(maxsize=512)
def _gzipped(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)


VENDOR_CACHE = "public, max-age=3600"
_OURS = PAGES_DIR / "components" / "vendor"
VENDORS = {
    "plotly/plotly.min.js": Path(plotly.__file__).parent / "package_data" / "plotly.min.js",
    "plotly/plotly-cartesian.min.js": _OURS / "plotly" / "plotly-cartesian.min.js.gz",
    "uplot/uplot.js": _OURS / "uplot" / "uplot.js",
}
"""The scripts of plotly and uPlot; one of them is stored gzipped."""


def vendor_routes(prefixes: Collection[str]) -> list[BaseRoute]:
    """Serve the vendors' scripts at /vendor/... below each of these paths."""
    scripts = {name: _Script(path) for name, path in VENDORS.items()}
    return [
        Route(f"{prefix}/vendor/{name}", script.answer)
        for prefix in prefixes
        for name, script in scripts.items()
    ]


class _Script:
    """A script; one that is stored gzipped is decompressed for browsers that cannot read it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        facts = path.stat()
        self._tag = f'"{facts.st_size:x}-{facts.st_mtime_ns:x}"'

    async def answer(self, request: Request) -> Response:
        """Return the script, or that the browser has it."""
        headers = {"Cache-Control": VENDOR_CACHE, "ETag": self._tag}
        if request.headers.get("if-none-match") == self._tag:
            return Response(status_code=304, headers=headers)
        if self._path.suffix != ".gz":
            return FileResponse(self._path, headers=headers, media_type="text/javascript")
        body = self._path.read_bytes()
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
        else:
            body = gzip.decompress(body)
        return Response(body, media_type="text/javascript", headers=headers)


def health(_request: Request) -> JSONResponse:
    """Answer ``/health``: 200 if the server can train, else 503 and the reason.

    It says no more than the app shows anyway: status and queue. Starlette calls this in a thread.
    """
    return health_response(_checkup().look())


def health_response(health: Health) -> JSONResponse:
    """Return the response of a server."""
    values = {
        "ok": health.reason is None,
        "reason": health.reason,
        "queue": {
            "running": health.running,
            "max_running": health.max_running,
            "waiting": health.waiting,
            "max_waiting": health.max_waiting,
        },
    }
    status = 200 if health.reason is None else 503
    return JSONResponse(values, status, {"Cache-Control": "no-store"})


@st.cache_resource(show_spinner=False)
def _checkup() -> Checkup:
    return Checkup(runs_access.queue())
