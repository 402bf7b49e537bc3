"""Requests that the server refuses: foreign host names, metrics, and bodies that are too large."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Collection
from http import HTTPStatus
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.app.typed import MAX_MEGABYTES
from pages.server.streamlit_internals import is_upload_stored
from tfm_core import settings

_PROXY_HEADERS = ("x-forwarded-", "forwarded", "via", "x-real-ip")
"""Headers that a proxy adds. A script can set some of them in a request but not for a WebSocket,
and the app does nothing without a session."""


class Hosts:
    """Refuse a request over loopback under a host name that is not this computer's.

    A website can point its own name at 127.0.0.1 once its page is open (DNS rebinding). Its scripts
    and this server then share an origin, so Streamlit's check of Origin against Host passes. The
    name in the Host header is what such a page cannot forge.
    """

    def __init__(self, app: ASGIApp, *, allowed: Collection[str]) -> None:
        """Wrap an app. allowed: further names, ``*.example.org`` for all below one, ``*`` for any.

        Addresses and names without a dot are always allowed: nobody can point them here.
        """
        self.app, self.allowed = app, {name.lower() for name in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket") or self._is_allowed(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            message = "This host name is not allowed. TFM_HOSTS lists the allowed names."
            await PlainTextResponse(message, 421)(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        address = _address((scope.get("server") or ("",))[0])
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        is_loopback = address is not None and address.is_loopback
        if "*" in self.allowed or not is_loopback:
            return True
        headers = Headers(scope=scope)
        if any(name.startswith(_PROXY_HEADERS) for name in headers):
            return True
        name = _name(headers.get("host", ""))
        below = {"*" + name[at:] for at, sign in enumerate(name) if sign == "."}
        return (
            "." not in name.rstrip(".")
            or name.endswith(".localhost")
            or _address(name) is not None
            or name in self.allowed
            or not below.isdisjoint(self.allowed)
        )


def allowed() -> set[str]:
    """Return the host names of this computer and of the server's settings."""
    names = {socket.gethostname(), *settings.read().hosts}
    names |= {st.get_option("server.address"), st.get_option("browser.serverAddress")}
    return {name for name in names if name}


def _name(host: str) -> str:
    """Return the name in a Host header, without its port; ``?.?`` for an invalid one."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return "?.?"


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class NoMetrics:
    """Answer Streamlit's metrics, which tell names of functions and cache sizes, with 404.

    Streamlit has no switch for them, and no route may stand before its own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"].rstrip("/").endswith("/_stcore/metrics"):
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
            return
        await self.app(scope, receive, send)


MAX_PER_SESSION = 2 * MAX_MEGABYTES * 2**20
MAX_TOTAL = 200_000_000
MAX_BODY = 1_000_000
"""Bytes of a request that is not an upload."""

_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/([^/]+)$")
File = tuple[str, str]
"""The ids of a session and of a file that it uploaded."""


class Uploads:
    """Limit the bodies of requests as they arrive; answer 413 beyond the limit.

    Streamlit limits one upload (``server.maxUploadSize``) but keeps all of them in memory until
    their session ends. This limits the uploads of a session together, and those of all sessions.
    """

    def __init__(self, app: ASGIApp, *, is_stored: Callable[[File], bool] | None = None) -> None:
        """Wrap an app. is_stored: whether a file is still in memory; None asks Streamlit."""
        self._app = app
        self._is_stored = is_stored or (lambda file: is_upload_stored(*file))
        self._sizes: dict[File, int] = {}
        self._arriving: set[File] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        match = _UPLOAD.search(scope["path"])
        if match is None or scope["method"] != "PUT":
            await self._forward(scope, receive, send, None)
            return
        file = (match[1], match[2])
        self._sizes = {
            other: size
            for other, size in self._sizes.items()
            if other in self._arriving or self._is_stored(other)
        }
        before = self._sizes.get(file, 0)
        self._arriving.add(file)
        try:
            if not await self._forward(scope, receive, send, file):
                self._sizes[file] = before
        finally:
            self._arriving.discard(file)

    def _limit(self, file: File | None) -> int:
        """Return how many bytes the body of a file, or of another request, may have."""
        if file is None:
            return MAX_BODY
        others = {other: size for other, size in self._sizes.items() if other != file}
        of_session = sum(size for other, size in others.items() if other[0] == file[0])
        return min(MAX_PER_SESSION - of_session, MAX_TOTAL - sum(others.values()))

    async def _forward(self, scope: Scope, receive: Receive, send: Send, file: File | None) -> bool:
        """Pass a request on up to its limit; return whether the app accepted it.

        file: counted while it arrives, so that two simultaneous uploads count together.
        """
        status, n_read = 0, 0

        async def counted() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > self._limit(file):
                raise _TooLarge
            if file is not None:
                self._sizes[file] = n_read
            return message

        async def with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            length = dict(scope["headers"]).get(b"content-length", b"")
            is_number = length.isdigit() and len(length) < 20
            if is_number and int(length) > self._limit(file):
                raise _TooLarge
            await self._app(scope, counted, with_status)
        except _TooLarge:
            if not status:
                message = "This request is too large."
                if file is not None:
                    message = "The uploads of this session are too large. Reload the page to retry."
                await PlainTextResponse(
                    message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"Connection": "close"}
                )(scope, receive, send)
            return False
        return status < HTTPStatus.BAD_REQUEST


class _TooLarge(Exception):
    """A body is above its limit."""
