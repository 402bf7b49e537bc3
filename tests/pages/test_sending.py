"""Every connection of the server sends at once what it has."""

import asyncio
import socket
from asyncio import base_events

import pytest

from pages.sending import send_at_once

pytestmark = pytest.mark.quick


async def _holds_back() -> bool:
    """Whether a connection holds small pieces back that a socket like Streamlit's accepted."""
    listening = socket.socket()
    listening.bind(("localhost", 0))
    accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        accepted.set_result(not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(accept, sock=listening):
        reader, writer = await asyncio.open_connection(*listening.getsockname()[:2])
        assert await reader.read() == b""  # its end
        writer.close()
        return await accepted


def test_no_connection_holds_anything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_events, "_set_nodelay", base_events._set_nodelay)  # put back after it
    send_at_once()
    assert not asyncio.run(_holds_back())


def test_the_app_asks_for_it() -> None:
    import app  # noqa: F401

    assert not asyncio.run(_holds_back())
