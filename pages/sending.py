"""Sending: what a page is sent leaves at once, in however many pieces it is written.

TCP holds back a small piece until the one before it was confirmed (Nagle 1984, RFC 896), and who
receives it waits up to 40 ms before confirming: a file's head and body, or two messages of a page,
would be that far apart. asyncio turns that off for sockets that name TCP, which Streamlit's does
not; what it asks then is replaced.
"""

from __future__ import annotations

import socket
from asyncio import base_events

_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def send_at_once() -> None:
    """Let all connections of this process that asyncio opens or accepts from now on do so."""
    base_events._set_nodelay = _set_nodelay  # type: ignore[attr-defined]


def _set_nodelay(connection: socket.socket) -> None:
    if connection.family in _FAMILIES and connection.type == socket.SOCK_STREAM:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
