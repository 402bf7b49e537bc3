"""Files that the server sends: of Streamlit, and vendors' scripts."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

import anyio
import plotly
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.i18n import PAGES_DIR

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
    "plotly": (Path(plotly.__file__).parent / "package_data", {"plotly.min.js"}),
    "uplot": (_OURS / "uplot", {"uplot.js"}),
    "viz": (_OURS / "viz", {"viz.js"}),
}
PACKED = {"plotly/plotly-cartesian.min.js": _OURS / "plotly" / "plotly-cartesian.min.js.gz"}
"""Scripts that are stored gzipped."""


def vendor_routes(prefixes: Collection[str]) -> list[BaseRoute]:
    """Serve the scripts of plotly, uPlot and Graphviz at /vendor/... below each of these paths."""
    packed = {name: _GzippedScript(path) for name, path in PACKED.items()}
    return [
        *(
            Route(f"{prefix}/vendor/{name}", script.answer)
            for prefix in prefixes
            for name, script in packed.items()
        ),
        *(
            Mount(f"{prefix}/vendor/{name}", _Only(folder, files))
            for prefix in prefixes
            for name, (folder, files) in VENDORS.items()
        ),
    ]


class _GzippedScript:
    """A gzipped script, decompressed for browsers that cannot read it."""

    def __init__(self, path: Path) -> None:
        self._gzipped = path.read_bytes()
        self._tag = f'"{hashlib.sha256(self._gzipped).hexdigest()[:32]}"'

    async def answer(self, request: Request) -> Response:
        headers = {"Cache-Control": VENDOR_CACHE, "ETag": self._tag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self._tag:
            return Response(status_code=304, headers=headers)
        body = self._gzipped
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
        else:
            body = gzip.decompress(body)
        return Response(body, media_type="text/javascript", headers=headers)


class _Only(StaticFiles):
    """Some files of a folder, and no others."""

    def __init__(self, folder: Path, files: Collection[str]) -> None:
        super().__init__(directory=folder)
        self._files = files

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path not in self._files:
            raise HTTPException(404)
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = VENDOR_CACHE
        return response
