"""Held: a large message that a browser still holds is named to it, not sent once more.

Streamlit believes what the browser said that it holds when it asked for a run. A run that ends
while that question is under way lets the browser forget some of it, and the name of a message that
it holds no longer ends its connection for good ("Cached ForwardMsg MISS"). Here the server counts
for every connection what it sent, in the order in which it is received, by the rule by which
Streamlit's page forgets (``ForwardMessageCache.ts``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import forward_msg_cache
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.web.server.starlette import starlette_websocket
from streamlit.web.server.starlette.starlette_websocket import StarletteSessionClient


@dataclass(slots=True)
class _Kept:
    fragment: str
    """What drew it; ``""`` is the page."""

    used: int
    """How many runs had ended when it was used last."""


class Held:
    """The large messages that one browser holds."""

    def __init__(self, most_runs: int) -> None:
        """most_runs: how many runs may end without a message until it counts as forgotten."""
        self._most_runs = most_runs
        self._ended = 0
        self._kept: dict[str, _Kept] = {}

    def named(self, message: ForwardMsg) -> ForwardMsg:
        """Return what to send for a message, all of which pass here: its name, or itself."""
        if message.WhichOneof("type") == "script_finished":
            self._end_run(message)
        elif message.metadata.cacheable:
            kept = self._kept.get(message.hash)
            if kept is not None:
                kept.used = self._ended
                return forward_msg_cache.create_reference_msg(message)
            self._kept[message.hash] = _Kept(message.delta.fragment_id, self._ended)
        return message

    def _end_run(self, message: ForwardMsg) -> None:
        """Forget what was not used for long: after fragments only of what they had drawn."""
        if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return
        self._ended += 1
        fragments = message.metadata.run.fragment_ids
        for name, kept in list(self._kept.items()):
            is_of_run = not fragments or kept.fragment in fragments
            if is_of_run and self._ended - kept.used > self._most_runs:
                del self._kept[name]


class _Connection(StarletteSessionClient):
    """A connection to a browser that knows what that holds."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        # one run less than the browser: a count that is off by one costs bytes, not a connection
        self._held = Held(int(st.get_option("global.maxCachedMessageAge")) - 1)

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        super().write_forward_msg(self._held.named(msg))


def name_held() -> None:
    """Let all connections of this process do so from now on, whatever a browser says it holds."""
    script_run_context.create_reference_msg = lambda msg: msg  # type: ignore[attr-defined]
    starlette_websocket.StarletteSessionClient = _Connection  # type: ignore[assignment,misc]
