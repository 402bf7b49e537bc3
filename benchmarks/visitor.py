"""A visitor without a browser: requests pages over the websocket and measures the time.

What a browser needs to draw a page costs the same machine its cores, and would be counted as the
server's time; this client only listens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

PATIENCE = 30.0  # seconds
_LOOK = 0.25  # seconds


@dataclass(slots=True)
class Watched:
    """A visitor's waiting times in seconds: pages redrawn, and parts that tick."""

    pages: list[float] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)


class Visitor:
    """One session with the app. buttons: the id of each that it has been sent, by its key."""

    def __init__(self, connection: ClientConnection) -> None:
        """Speak over an open connection."""
        self._connection = connection
        self._page, self._query, self._script = "", "", ""
        self._every: dict[str, float] = {}  # parts of the page that tick, and how often
        self.buttons: dict[str, str] = {}

    def visit(self, page: str, query: str = "", *, patience: float = PATIENCE) -> float:
        """Ask for a page by its url path; return seconds until its script has ended well.

        patience: seconds without a word from the server. Raises TimeoutError, and RuntimeError
        where the script failed.
        """
        self._page, self._query = page, query
        begin = time.perf_counter()
        self._ask_for_page()
        while not self._is_end_of_page(self._next(patience)):
            pass
        return time.perf_counter() - begin

    def press(self, key: str, *, patience: float = PATIENCE) -> float:
        """Press a button of the page by its key; return seconds until the page is drawn.

        patience: seconds without a word from the server. Raises KeyError, TimeoutError, and
        RuntimeError where the script failed.
        """
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_script_hash = self._script
        message.rerun_script.widget_states.widgets.add(id=self.buttons[key], trigger_value=True)
        begin = time.perf_counter()
        self._connection.send(message.SerializeToString())
        while not self._is_end_of_page(self._next(patience)):
            pass
        return time.perf_counter() - begin

    def watch(self, ends: threading.Event, *, acts_at: Iterator[float]) -> Watched:
        """Let the page tick as a browser does until ``ends`` is set.

        acts_at: at which times (``time.perf_counter``) to do what draws the page anew, as the press
        of any button does.
        """
        watched = Watched()
        now = time.perf_counter()
        due = {part: now + every for part, every in self._every.items()}
        asked: dict[str, float] = {}
        acts, acted = next(acts_at), None
        while not ends.is_set():
            now = time.perf_counter()
            if acts <= now:
                acts = next(acts_at)
                if acted is None:
                    acted = now
                    self._ask_for_page()
            for part in [part for part, when in due.items() if when <= now]:
                due[part] = now + self._every[part]
                asked.setdefault(part, now)
                self._ask_for_part(part)
            try:
                message = self._next(min(now + _LOOK, acts, *due.values()) - now)
            except TimeoutError:
                continue
            now = time.perf_counter()
            kind, parts = message.WhichOneof("type"), message.metadata.run.fragment_ids
            _reschedule(due, message, now)
            if kind == "new_session" and not parts:
                asked.clear()
            elif kind == "script_finished":
                watched.ticks += [now - asked.pop(part) for part in parts if part in asked]
                if acted is not None and self._is_end_of_page(message):
                    watched.pages.append(now - acted)
                    acted = None
        return watched

    def _next(self, patience: float) -> ForwardMsg:
        """Return the next message. Raises TimeoutError."""
        data = self._connection.recv(max(0.0, patience), decode=False)
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "new_session" and not message.metadata.run.fragment_ids:
            self._every.clear()
        elif kind == "navigation":
            self._script = message.navigation.page_script_hash
        elif kind == "auto_rerun":
            self._every[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "button":
            button = message.delta.new_element.button.id
            self.buttons[button.split("-", 2)[-1]] = button
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        return message

    def _is_end_of_page(self, message: ForwardMsg) -> bool:
        """Return whether the page's script has ended. Raises RuntimeError if it failed."""
        if message.WhichOneof("type") != "script_finished":
            return False
        if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
            raise RuntimeError(f"The page “{self._page}” could not be compiled.")
        return bool(message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY)

    def _ask_for_page(self) -> None:
        message = BackMsg()
        message.rerun_script.page_name = self._page
        message.rerun_script.query_string = self._query
        self._connection.send(message.SerializeToString())

    def _ask_for_part(self, part: str) -> None:
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_script_hash = self._script
        message.rerun_script.fragment_id = part
        message.rerun_script.is_auto_rerun = True
        self._connection.send(message.SerializeToString())


def _reschedule(due: dict[str, float], message: ForwardMsg, now: float) -> None:
    """Change when each part of a page is drawn next, as a message says."""
    kind = message.WhichOneof("type")
    if kind == "new_session" and not message.metadata.run.fragment_ids:
        due.clear()
    elif kind == "auto_rerun":
        due[message.auto_rerun.fragment_id] = now + message.auto_rerun.interval
    elif kind == "stop_auto_rerun":
        for part in message.stop_auto_rerun.fragment_ids:
            due.pop(part, None)


@contextmanager
def visitor(url: str, *, cookies: Mapping[str, str] | None = None) -> Iterator[Visitor]:
    """Open a session with the app at ``url`` for the length of the block."""
    address = f"ws{url.removeprefix('http')}/_stcore/stream"
    said = "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())
    with connect(
        address,
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
        additional_headers={"Cookie": said} if said else None,
    ) as connection:
        yield Visitor(connection)
