"""Everything here that relies on internals of Streamlit, plotly or asyncio: imports and patches.

``tests/pages/server/test_streamlit_internals.py`` has a test for each patch. When one fails after
an upgrade, read the patch's docstring, look at the names that it replaces, and adapt or drop it.
"""

from __future__ import annotations

import logging
import socket
import sys
from asyncio import base_events
from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.components.v2 import manifest_scanner
from streamlit.elements.widgets import button_group, multiselect, radio, select_slider
from streamlit.elements.widgets.selectbox import SelectboxSerde
from streamlit.net_util import get_internal_ip
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import app_session, forward_msg_cache
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.state.session_state import Serialized, Value, WStates
from streamlit.runtime.uploaded_file_manager import UploadedFile

__all__ = ["UploadedFile", "get_internal_ip", "get_script_run_ctx"]

logger = logging.getLogger(__name__)


def apply_patches(follows: Callable[[], tuple[str, ...]] = tuple) -> None:
    """Apply all patches to this process.

    follows: called after fragments ran; the keys of the fragments that are to be drawn now.
    """
    # no components of other packages: Streamlit would read the metadata of each at startup
    manifest_scanner.scan_component_manifests = lambda max_workers=None: []
    # TCP holds a small piece back until the one before it is acknowledged (Nagle 1984, RFC 896), up
    # to 40 ms; asyncio turns that off only for sockets that name TCP, which Streamlit's does not
    base_events._set_nodelay = _set_nodelay  # type: ignore[attr-defined]
    send_references_by_own_count()
    drop_fragments_of_other_pages()
    _Runner.follows = staticmethod(follows)
    replace_invalid_widget_values()
    wait_for_modules_of_figures()


# ---- sockets


def _set_nodelay(connection: socket.socket) -> None:
    is_internet = connection.family in (socket.AF_INET, socket.AF_INET6)
    if is_internet and connection.type == socket.SOCK_STREAM:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


# ---- messages that the browser has cached


class BrowserCache:
    """The large messages that one browser has cached, by the rule of ``ForwardMessageCache.ts``."""

    def __init__(self, max_age: int) -> None:
        """max_age: the number of runs that may end before an unused message is forgotten."""
        self._max_age = max_age
        self._n_ended = 0
        # hash → the fragment that drew it ("" is the page), the runs that had ended at its last use
        self._messages: dict[str, tuple[str, int]] = {}

    def reference(self, message: ForwardMsg) -> ForwardMsg:
        """Return what to send for the next message: a reference to it if cached, else itself."""
        if message.WhichOneof("type") == "script_finished":
            self._end_run(message)
        elif message.metadata.cacheable:
            cached = self._messages.get(message.hash)
            if cached is not None:
                self._messages[message.hash] = (cached[0], self._n_ended)
                return forward_msg_cache.create_reference_msg(message)
            self._messages[message.hash] = (message.delta.fragment_id, self._n_ended)
        return message

    def _end_run(self, message: ForwardMsg) -> None:
        """Forget old messages; after a run of fragments only those that they had drawn."""
        if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return
        self._n_ended += 1
        fragments = message.metadata.run.fragment_ids
        for name, (fragment, last_used) in list(self._messages.items()):
            is_of_run = not fragments or fragment in fragments
            if is_of_run and self._n_ended - last_used > self._max_age:
                del self._messages[name]


def send_references_by_own_count() -> None:
    """Decide on the server which messages a browser has cached.

    Streamlit believes what the browser reported when it requested a run. If another run ends in
    between, the browser may have dropped a message that the server refers to, and the connection
    breaks ("Cached ForwardMsg MISS").
    """
    from streamlit.web.server.starlette import starlette_websocket  # slow; only the app needs it

    class Connection(starlette_websocket.StarletteSessionClient):
        """A connection that counts what its browser has cached."""

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            # one less than the browser: being off by one costs bytes, not the connection
            self._cache = BrowserCache(int(st.get_option("global.maxCachedMessageAge")) - 1)

        def write_forward_msg(self, msg: ForwardMsg) -> None:
            super().write_forward_msg(self._cache.reference(msg))

    script_run_context.create_reference_msg = lambda msg: msg  # type: ignore[attr-defined]
    starlette_websocket.StarletteSessionClient = Connection  # type: ignore[assignment,misc]


# ---- runs of fragments


class _Runner(ScriptRunner):
    """The script runner of a session.

    It ignores fragments of a page that was left, and draws those of the frame after another whose
    effects they show.
    """

    follows: Callable[[], tuple[str, ...]] = staticmethod(tuple)

    def _run_script(self, rerun_data: RerunData) -> None:
        is_fragment = bool(rerun_data.fragment_id_queue)
        page = self._pages_manager.current_page_script_hash
        if not is_fragment:
            super()._run_script(rerun_data)
        elif rerun_data.page_script_hash == page:
            super()._run_script(rerun_data)
            context = get_script_run_ctx()
            if context is not None and (keys := self.follows()):
                self._requests.request_rerun(
                    RerunData(
                        query_string=context.query_string,
                        page_script_hash=page,
                        fragment_id_queue=self._fragment_storage.resolve_target(keys),
                        cached_message_hashes=context.cached_message_hashes,
                        context_info=context.context_info,
                    )
                )


def drop_fragments_of_other_pages() -> None:
    """Ignore a fragment's timed rerun that was requested before the page was left.

    Streamlit would announce the old page again; the browser then clears the new one and shows a
    blank page.
    """
    app_session.ScriptRunner = _Runner  # type: ignore[attr-defined]


# ---- values of widgets

_NUMBERS = {"int_value", "double_value"}
"""A browser sends whole numbers of a number input as int_value, whatever the widget declares."""

_get_value = WStates.__getitem__


def replace_invalid_widget_values() -> None:
    """Give a widget its default where a message has a value of another type.

    Browsers send no such value, but anyone can. Streamlit's deserialisers and the pages assume the
    right type, and an error would end the drawing of the page.
    """
    WStates.__getitem__ = _value_or_default  # type: ignore[method-assign]


def _value_or_default(states: WStates, key: str) -> Any:
    """Return the value of a widget, or its default. Raises KeyError if nothing was sent."""
    sent, metadata = states.states.get(key), states.widget_metadata.get(key)
    if metadata is None or not isinstance(sent, Serialized):
        return _get_value(states, key)
    kind = sent.value.WhichOneof("value")
    try:
        if kind not in (None, metadata.value_type) and not {kind, metadata.value_type} <= _NUMBERS:
            raise TypeError(f"{kind}, not {metadata.value_type}")
        box = getattr(metadata.deserializer, "__self__", None)
        text = sent.value.string_value if kind else ""
        if isinstance(box, SelectboxSerde) and text not in {"", *box.formatted_options}:
            raise ValueError("no such option")
        value = _get_value(states, key)
        if kind is None:  # Streamlit now takes the widget for one that has no values
            states.set_widget_metadata(metadata)
        return value
    except Exception as error:
        logger.warning("A widget got a value that it cannot have: %s", error)
    value = metadata.deserializer(None)
    states.states[key] = Value(value)
    return value


_CHOICES = (
    SelectboxSerde,
    button_group._SingleSelectButtonGroupSerde,
    button_group._MultiSelectButtonGroupSerde,
    multiselect.MultiSelectSerde,
    radio.RadioSerde,
    select_slider.SelectSliderSerde,
)


def send_choices_anew() -> None:
    """Send what is chosen in every choice of the page again, from a callback.

    Browsers hold a choice by its label, and would go on to send a label in the language of before.
    """
    context = get_script_run_ctx()
    if context is None:
        return
    state = context.session_state._state
    for key in list(state.filtered_state):
        metadata = state._new_widget_state.widget_metadata.get(state._get_widget_id(key))
        if isinstance(getattr(getattr(metadata, "deserializer", None), "__self__", None), _CHOICES):
            st.session_state[key] = st.session_state[key]


# ---- uploaded files


def free_uploads(files: Iterable[UploadedFile]) -> None:
    """Free the memory of files that were read, so that their session may send others."""
    context = get_script_run_ctx()
    if context and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        for file in files:
            context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)


def is_upload_stored(session: str, name: str) -> bool:
    """Return whether Streamlit still has an uploaded file of a session."""
    files = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return files is not None and bool(files.get_files(session, [name]))


# ---- modules that figures look for


def wait_for_modules_of_figures() -> None:
    """Let plotly take no module that another thread is importing for one that is there.

    ``get_module(name, should_load=False)`` looks into ``sys.modules``: a figure that is made while
    pandas is imported for the first time would not find ``pandas.Series``.
    """
    from plotly import basedatatypes, optional_imports  # the first imports all that makes figures

    find = optional_imports.get_module

    def get_module(name: str, should_load: bool = True) -> Any:
        module = find(name, should_load)
        is_begun = getattr(getattr(module, "__spec__", None), "_initializing", False)
        return None if is_begun and not should_load else module

    assert basedatatypes
    for name, part in [*sys.modules.items()]:
        is_plotlys = name.partition(".")[0] in ("plotly", "_plotly_utils")
        if is_plotlys and vars(part).get("get_module") is find:
            vars(part)["get_module"] = get_module
