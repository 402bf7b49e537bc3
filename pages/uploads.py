"""What the server takes in over HTTP: bodies of a bounded size, and so many uploads of a session.

Streamlit bounds a single upload (``server.maxUploadSize``) and keeps every one in memory until its
session ends or somebody removes it, whether a page asks for it or not. Here a session's uploads are
bounded together, and so are all sessions'; everything else that is sent has a small body.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from pages.ui.uploaded import MAX_MEGABYTES

MAX_OF_SESSION = 2 * MAX_MEGABYTES * 2**20
MAX_OF_ALL = 200_000_000
MAX_BODY = 1_000_000
"""Bytes of what is no upload."""

_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/([^/]+)$")
File = tuple[str, str]
"""A session and a file of it."""


class Uploads:
    """ASGI middleware that counts bodies as they arrive, and refuses with 413 what is too much."""

    def __init__(self, app: ASGIApp, *, is_kept: Callable[[File], bool] | None = None) -> None:
        """Stand before ``app``. is_kept: whether a file is still there; Streamlit is asked if None.

        It forgets what was removed, and all of a session that ended.
        """
        self._app = app
        self._is_kept = is_kept or _is_kept
        self._held: dict[File, int] = {}
        self._coming: set[File] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with a body that is measured."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        match = _UPLOAD.search(scope["path"])
        if match is None or scope["method"] != "PUT":
            await self._passed(scope, receive, send, None)
            return
        file = (match[1], match[2])
        self._forget_removed()
        before = self._held.get(file, 0)
        self._coming.add(file)
        try:
            if not await self._passed(scope, receive, send, file):
                self._held[file] = before
        finally:
            self._coming.discard(file)

    def _forget_removed(self) -> None:
        kept = [one for one in self._held if one in self._coming or self._is_kept(one)]
        self._held = {one: self._held[one] for one in kept}

    def _room(self, file: File | None) -> int:
        """Return how many bytes a body may have, of a file or of something else."""
        if file is None:
            return MAX_BODY
        others = {one: size for one, size in self._held.items() if one != file}
        of_session = sum(size for one, size in others.items() if one[0] == file[0])
        return min(MAX_OF_SESSION - of_session, MAX_OF_ALL - sum(others.values()))

    async def _passed(self, scope: Scope, receive: Receive, send: Send, file: File | None) -> bool:
        """Pass a request on, as far as there is room for its body; say whether it was taken.

        file: what its bytes are noted as while they come, so that two at once count together.
        """
        status, n_read = 0, 0

        async def counted() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > self._room(file):
                raise _TooMuch
            if file is not None:
                self._held[file] = n_read
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if _announced(scope) > self._room(file):
                raise _TooMuch
            await self._app(scope, counted, noted)
        except _TooMuch:
            if not status:
                await _refusal(file)(scope, receive, send)
            return False
        return status < HTTPStatus.BAD_REQUEST


class _TooMuch(Exception):
    """A body is larger than it may be."""


def _announced(scope: Scope) -> int:
    """Return the length that a request announces; 0 where it announces none."""
    said = dict(scope["headers"]).get(b"content-length", b"")
    return int(said) if said.isdigit() and len(said) < 20 else 0


def _refusal(file: File | None) -> PlainTextResponse:
    words = "This request is larger than it may be."
    if file is not None:
        words = "These files are more than may be kept here; reload the page to send others."
    headers = {"Connection": "close"}
    return PlainTextResponse(words, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, headers)


def _is_kept(file: File) -> bool:
    session, name = file
    files = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return files is not None and bool(files.get_files(session, [name]))
