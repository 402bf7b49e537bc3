"""Streamlit's own scripts, styles and fonts: sent from memory, and compressed once for who is far.

Streamlit hands each file on through threads, which wait for their turn while pages are drawn, and
sends it as it is, a hundred files and some megabytes to each new browser. Their names hold their
hashes, so what was sent once never changes.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

KEPT = "public, immutable, max-age=31536000"
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}
_PACKED = {".woff2"}
"""What is small already."""
_HERE = {"127.0.0.1", "::1"}


class Bundles:
    """Answer for the files below ``static``, and leave all else to an app."""

    def __init__(self, app: ASGIApp, *, folder: Path, prefixes: Collection[str]) -> None:
        """folder: holds ``static``, whose files are asked for at /static/... below each prefix."""
        self.app = app
        self._files = {
            f"{prefix}/static/{path.parent.name}/{path.name}": path
            for path in folder.glob("static/*/*")
            if path.suffix in MEDIA_TYPES
            for prefix in prefixes
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_asked = scope["type"] == "http" and scope["method"] == "GET"
        path = self._files.get(scope["path"]) if is_asked else None
        answer = None if path is None else await _answer(path, scope)
        await (answer or self.app)(scope, receive, send)


async def _answer(path: Path, scope: Scope) -> Response | None:
    """Return what is answered; None for a part of a file, or one that went."""
    asked = Headers(scope=scope)
    if "range" in asked:
        return None
    tag = f'"{path.name}"'
    said = {"Cache-Control": KEPT, "ETag": tag, "Vary": "Accept-Encoding"}
    if asked.get("if-none-match") == tag:
        return Response(status_code=304, headers=said)
    try:
        if _is_far(scope, asked) and path.suffix not in _PACKED:
            body = await anyio.to_thread.run_sync(_small, path)
            said["Content-Encoding"] = "gzip"
        else:
            body = path.read_bytes()
    except OSError:
        return None
    return Response(body, media_type=MEDIA_TYPES[path.suffix], headers=said)


def _is_far(scope: Scope, asked: Headers) -> bool:
    """Say whether a browser that unpacks is on another machine: here to pack takes longer."""
    if "gzip" not in asked.get("accept-encoding", ""):
        return False
    client = scope.get("client")
    return client is None or client[0] not in _HERE or "x-forwarded-for" in asked


@lru_cache(maxsize=512)
def _small(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)
