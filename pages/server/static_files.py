"""Files that the server sends: of published runs, of Streamlit, and vendors' scripts."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Collection
from email.utils import formatdate
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

from pages.components.live import POLICY
from pages.i18n import PAGES_DIR
from tfm_core.hosting.published.folder import is_lasting, media_type
from tfm_core.reading import Unreadable, open_plain
from tfm_core.runs import settings

_REVALIDATE = "no-cache"
IMMUTABLE = "public, max-age=31536000, immutable"
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, content."""


def common_headers(unused: Collection[str]) -> dict[str, str]:
    """Return the headers of every answer. unused: browser features to switch off."""
    frames = settings.read().frame_ancestors
    ancestors = "" if frames is None else f"; frame-ancestors {frames}"
    return {
        "accept-ranges": "bytes",
        "content-security-policy": POLICY + ancestors,
        "permissions-policy": ", ".join(f"{name}=()" for name in unused),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }


def file_response(path: Path, request: Headers) -> Answer:
    """Return the response for a file, with 304, byte ranges, and gzip if ``path``.gz exists."""
    if path.suffix in {".js", ".css"} and "gzip" in request.get("accept-encoding", ""):
        status, headers, content = _file_response(path.with_name(f"{path.name}.gz"), request)
        if status in {200, 304}:
            headers |= {"content-type": media_type(path.name), "content-encoding": "gzip"}
            return status, headers | {"vary": "accept-encoding"}, content
    return _file_response(path, request)


def _file_response(path: Path, request: Headers) -> Answer:
    try:
        file = open_plain(path)
    except (OSError, Unreadable):
        return 404, {"cache-control": "no-store"}, b""
    with os.fdopen(file, "rb") as opened:
        facts = os.fstat(opened.fileno())
        tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
        headers = {
            "etag": tag,
            "last-modified": formatdate(facts.st_mtime, usegmt=True),
            "cache-control": IMMUTABLE if is_lasting(path.name) else _REVALIDATE,
        }
        known = request.get("if-none-match", "")
        if tag in (each.strip().removeprefix("W/") for each in known.split(",")):
            return 304, headers, b""
        headers["content-type"] = media_type(path.name)
        part = _RANGE.fullmatch(request.get("range", ""))
        if part is None or request.get("if-range", tag) != tag:
            return 200, headers, opened.read(facts.st_size)
        first, last = int(part[1]), min(int(part[2] or facts.st_size), facts.st_size - 1)
        if first > last:
            return 416, headers | {"content-range": f"bytes */{facts.st_size}"}, b""
        opened.seek(first)
        headers["content-range"] = f"bytes {first}-{last}/{facts.st_size}"
        return 206, headers, opened.read(last - first + 1)


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
        if _is_remote(scope, request) and path.suffix not in _COMPRESSED:
            body = await anyio.to_thread.run_sync(_gzipped, path)
            headers["Content-Encoding"] = "gzip"
        else:
            body = path.read_bytes()
    except OSError:
        return None
    return Response(body, media_type=MEDIA_TYPES[path.suffix], headers=headers)


def _is_remote(scope: Scope, request: Headers) -> bool:
    """Return whether a browser on another machine accepts gzip; locally it only costs time."""
    if "gzip" not in request.get("accept-encoding", ""):
        return False
    client = scope.get("client")
    return client is None or client[0] not in _LOCAL or "x-forwarded-for" in request


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
    packed = {name: _Packed(path) for name, path in PACKED.items()}
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


class _Packed:
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
