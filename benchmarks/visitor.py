"""A visitor without a browser: asks the server for pages over its websocket, and takes the time.

What a browser needs to draw a page costs the same machine its cores, and would be counted as the
server's time; this client only listens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

PATIENCE = 30.0  # seconds


class Visitor:
    """One session with the app."""

    def __init__(self, connection: ClientConnection) -> None:
        """Speak over an open connection."""
        self._connection = connection

    def visit(self, page: str, query: str = "") -> float:
        """Ask for a page by its url path; return seconds until its script has ended well.

        Raises TimeoutError, and RuntimeError where the script failed.
        """
        message = BackMsg()
        message.rerun_script.page_name = page
        message.rerun_script.query_string = query
        begin = time.perf_counter()
        self._connection.send(message.SerializeToString())
        while True:
            answer = ForwardMsg.FromString(self._connection.recv(PATIENCE, decode=False))
            if answer.WhichOneof("type") != "script_finished":
                continue
            if answer.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                return time.perf_counter() - begin
            if answer.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                raise RuntimeError(f"The page “{page}” could not be compiled.")


@contextmanager
def visitor(url: str) -> Iterator[Visitor]:
    """Open a session with the app at ``url`` for the length of the block."""
    address = f"ws{url.removeprefix('http')}/_stcore/stream"
    with connect(address, subprotocols=["streamlit"], max_size=None) as connection:  # type: ignore[list-item]
        yield Visitor(connection)
