"""Requests on the loopback address are answered only under a name of this computer.

A site can have its own name point to 127.0.0.1 after its page was opened (DNS rebinding). For the
browser its scripts and this server then have one origin, and Streamlit's check, which compares the
Origin with the Host, lets them in. What no such page can forge is the name in the Host header.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tfm_core.runs import settings

_PROXIED = ("x-forwarded-", "forwarded", "via", "x-real-ip")
"""Headers that a proxy adds. A script can set some of them in a request, but in none for a
WebSocket, and without a session there is nothing here to read or do."""


class Hosts:
    """Refuse a request that came over loopback under a name that is not this computer's."""

    def __init__(self, app: ASGIApp, *, allowed: Collection[str]) -> None:
        """Wrap an app. allowed: further names, ``*.example.org`` for all below one, ``*`` for any.

        Addresses and names without a dot are allowed: nobody can have them point here.
        """
        self.app, self.allowed = app, {name.lower() for name in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket") or self._is_allowed(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            words = "This server does not answer to this name. TFM_HOSTS lists the allowed names."
            await PlainTextResponse(words, 421)(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        if "*" in self.allowed or not _is_loopback((scope.get("server") or ("",))[0]):
            return True
        headers = Headers(scope=scope)
        if any(name.startswith(_PROXIED) for name in headers):
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
    """Return the names that the server's settings and this computer's name allow."""
    said = {socket.gethostname(), *settings.read().hosts}
    said |= {st.get_option("server.address"), st.get_option("browser.serverAddress")}
    return {name for name in said if name}


def _name(host: str) -> str:
    """Return the name in a Host header, without its port; ``?.?`` for an invalid one."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return "?.?"


def _is_loopback(name: str) -> bool:
    address = _address(name)
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    return address is not None and address.is_loopback


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
