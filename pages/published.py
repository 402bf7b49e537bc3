"""Published runs at addresses of their own: ``/live/TOKEN/``, without a session of the app.

A request costs a look at one file. It stands in front of all that the app does else, so that a
thousand watchers are no more to it than a thousand small files. What a browser has is not sent
again: ``If-None-Match`` is answered by 304, and of a log that grew ``Range`` fetches the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from email.utils import formatdate
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.components.live import POLICY
from tfm_core.publish.folder import PAGE, STATE, is_lasting, media_type
from tfm_core.publish.shelf import Shelf
from tfm_core.reading import Unreadable, open_plain
from tfm_core.runs import settings

PATH = "/live/"
_ASKED_AGAIN = "no-cache"
_KEPT = "public, max-age=31536000, immutable"
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, content."""


class Published:
    """Answer what is asked for below ``/live/``, and hand all else on to the app."""

    def __init__(
        self, app: ASGIApp, *, shelf: Shelf, prefixes: Collection[str], unused: Collection[str] = ()
    ) -> None:
        """Stand before an app.

        prefixes: the paths that it may be asked for at. unused: what a browser could let a page do
        and this one never does.
        """
        self.app, self.shelf = app, shelf
        self._roots = tuple(f"{prefix}{PATH}" for prefix in prefixes)
        said = settings.read()
        self._is_shut = said.login_to_watch and not said.max_published
        frames = said.frame_ancestors
        ancestors = "" if frames is None else f"; frame-ancestors {frames}"
        self._always = {
            "accept-ranges": "bytes",
            "content-security-policy": POLICY + ancestors,
            "permissions-policy": ", ".join(f"{name}=()" for name in unused),
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "x-robots-tag": "noindex",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        root = next((one for one in self._roots if scope.get("path", "").startswith(one)), None)
        if scope["type"] != "http" or root is None:
            await self.app(scope, receive, send)
            return
        status, said, content = self._answer(scope, scope["path"].removeprefix(root))
        said |= {"content-length": str(len(content)), **self._always}
        listed = [(name.encode(), value.encode()) for name, value in said.items()]
        await send({"type": "http.response.start", "status": status, "headers": listed})
        body = b"" if scope["method"] == "HEAD" else content
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Scope, path: str) -> Answer:
        if scope["method"] not in {"GET", "HEAD"}:
            return 405, {"allow": "GET, HEAD"}, b""
        if self._is_shut:
            return 404, {}, b""
        token, slash, name = path.partition("/")
        file = self.shelf.file(token, name or PAGE)
        if file is None:
            return 404, {}, b""
        if not slash:
            found = file.is_file()  # beside it lie the others: they are asked for by short names
            return (307, {"location": f"{token}/"}, b"") if found else (404, {}, b"")
        asked = Headers(scope=scope)
        if file.suffix in {".js", ".css"} and "gzip" in asked.get("accept-encoding", ""):
            status, said, content = answered(file.with_name(f"{file.name}.gz"), asked)
            if status in {200, 304}:
                said |= {"content-type": media_type(name), "content-encoding": "gzip"}
                return status, said | {"vary": "accept-encoding"}, content
        answer = answered(file, asked)
        if file.name == STATE and answer[0] in {200, 304}:
            self.shelf.polls[token] += 1
        return answer


def answered(path: Path, asked: Headers) -> Answer:
    """Return what is answered of a file to a request with these headers."""
    try:
        file = open_plain(path)
    except (OSError, Unreadable):
        return 404, {"cache-control": "no-store"}, b""
    with os.fdopen(file, "rb") as opened:
        facts = os.fstat(opened.fileno())
        tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
        said = {
            "etag": tag,
            "last-modified": formatdate(facts.st_mtime, usegmt=True),
            "cache-control": _KEPT if is_lasting(path.name) else _ASKED_AGAIN,
        }
        known = asked.get("if-none-match", "")
        if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
            return 304, said, b""
        said["content-type"] = media_type(path.name)
        part = _RANGE.fullmatch(asked.get("range", ""))
        if part is None or asked.get("if-range", tag) != tag:
            return 200, said, opened.read(facts.st_size)
        first, last = int(part[1]), min(int(part[2] or facts.st_size), facts.st_size - 1)
        if first > last:
            return 416, said | {"content-range": f"bytes */{facts.st_size}"}, b""
        opened.seek(first)
        said["content-range"] = f"bytes {first}-{last}/{facts.st_size}"
        return 206, said, opened.read(last - first + 1)
