"""Each patch of Streamlit, Plotly and asyncio does what it is for, on the installed versions."""

import asyncio
import json
import socket
import subprocess
import sys
from asyncio import base_events
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.bidi_component import main
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime import app_session, runtime
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates
from streamlit.web.server.starlette import starlette_websocket

from pages.app.navigation.page_table import PAGES
from pages.server import streamlit_internals
from pages.server.streamlit_internals import BrowserCache
from tests.pages.opening import opened_at
from tfm_core.runs.queue import local_workers

PATCHED = (
    (manifest_scanner, "scan_component_manifests"),
    (base_events, "_set_nodelay"),
    (script_run_context, "create_reference_msg"),
    (starlette_websocket, "StarletteSessionClient"),
    (app_session, "ScriptRunner"),
    (WStates, "__getitem__"),
)


@pytest.fixture
def patched(monkeypatch):
    """All patches, undone after the test."""
    for owner, name in PATCHED:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    streamlit_internals.apply_patches()


def user_of(module: Any, name: str, where: str) -> None:
    """Fail if Streamlit no longer looks a patched name up in the module where it is replaced."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert f"{name}(" in source, f"{module.__name__} no longer calls {name}: see {where}"


@pytest.mark.quick
def test_connections_count_what_is_cached_and_search_and_hold_nothing(patched):
    assert manifest_scanner.scan_component_manifests() == []
    from streamlit.components.v2 import component_manager

    sources = [Path(each.__file__).read_text() for each in (component_manager, runtime)]
    assert any("scan_component_manifests" in source for source in sources), (
        "Streamlit no longer scans manifests in component_manager: look at skip_manifest_scan"
    )
    client = starlette_websocket.StarletteSessionClient
    bases = [base for base in client.__mro__ if base.__name__ == "StarletteSessionClient"]
    assert any(hasattr(base, "write_forward_msg") for base in bases), (
        "StarletteSessionClient has no write_forward_msg: look at send_references_by_own_count"
    )
    message = _large("a")
    assert script_run_context.create_reference_msg(message) is message, (
        "script_run_context makes references itself: look at send_references_by_own_count"
    )
    user_of(script_run_context, "create_reference_msg", "send_references_by_own_count")
    user_of(starlette_websocket, "StarletteSessionClient", "send_references_by_own_count")
    assert not asyncio.run(_holds_back()), (
        "asyncio no longer calls base_events._set_nodelay: look at disable_nagle"
    )


@pytest.mark.quick
@pytest.mark.parametrize(
    ("fragments", "page", "is_run"),
    [([], "left", True), (["part"], "open", True), (["part"], "left", False)],
)
def test_fragments_of_a_page_that_was_left_are_not_run(
    patched, monkeypatch, fragments, page, is_run
):
    ran: list[RerunData] = []
    assert hasattr(ScriptRunner, "_run_script"), (
        "ScriptRunner has no _run_script: look at drop_fragments_of_other_pages"
    )
    monkeypatch.setattr(ScriptRunner, "_run_script", lambda self, data: ran.append(data))
    user_of(app_session, "ScriptRunner", "drop_fragments_of_other_pages")
    runner = app_session.ScriptRunner.__new__(app_session.ScriptRunner)
    runner._pages_manager = SimpleNamespace(current_page_script_hash="open")
    runner._run_script(RerunData(page_script_hash=page, fragment_id_queue=fragments))
    assert bool(ran) == is_run


@pytest.mark.quick
@pytest.mark.parametrize("fragments", [[], ["part"]])
@pytest.mark.parametrize("follows", [(), ("frame", "title")])
def test_fragments_of_the_frame_follow_another_where_they_are_due(monkeypatch, fragments, follows):
    for owner, name in PATCHED:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    monkeypatch.setattr(ScriptRunner, "_run_script", lambda self, data: None)
    context = SimpleNamespace(
        query_string="mask=window", cached_message_hashes=frozenset({"known"}), context_info=None
    )
    monkeypatch.setattr(streamlit_internals, "get_script_run_ctx", lambda: context)
    streamlit_internals.apply_patches(lambda: follows)
    runner = app_session.ScriptRunner.__new__(app_session.ScriptRunner)
    runner._pages_manager = SimpleNamespace(current_page_script_hash="open")
    runner._fragment_storage = SimpleNamespace(
        resolve_target=lambda keys: [f"id of {key}" for key in keys]
    )
    asked: list[RerunData] = []
    runner._requests = SimpleNamespace(request_rerun=asked.append)
    runner._run_script(RerunData(page_script_hash="open", fragment_id_queue=fragments))
    if not (follows and fragments):
        assert not asked
        return
    (request,) = asked
    assert (request.query_string, request.page_script_hash) == ("mask=window", "open")
    assert request.fragment_id_queue == ["id of frame", "id of title"]
    assert request.cached_message_hashes == {"known"}


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


EARLY, WHOLE, FRAGMENT = (
    ForwardMsg.FINISHED_EARLY_FOR_RERUN,
    ForwardMsg.FINISHED_SUCCESSFULLY,
    ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
)
MAX = 2


@dataclass
class Page:
    """What Streamlit's page does: it forgets at the end of a run, in the order of what it hears."""

    most: int = MAX
    runs: int = 0
    messages: dict[str, tuple[ForwardMsg, int, str]] = field(default_factory=dict)

    def hear(self, message: ForwardMsg) -> ForwardMsg:
        kind = message.WhichOneof("type")
        if kind == "script_finished" and message.script_finished != EARLY:
            self.runs += 1
            fragments = message.metadata.run.fragment_ids
            for name, (_message, used, fragment) in list(self.messages.items()):
                if fragments and fragment not in fragments:
                    continue
                if self.runs - used > self.most:
                    del self.messages[name]
        name = message.ref_hash if kind == "ref_hash" else message.hash
        if kind == "ref_hash":
            message, _used, fragment = self.messages[name]  # fails as the page does: "MISS"
            self.messages[name] = (message, self.runs, fragment)
        elif message.metadata.cacheable:
            fragment = self.messages.get(name, (None, 0, message.delta.fragment_id))[2]
            self.messages[name] = (message, self.runs, fragment)
        return message


def _large(name: str, fragment: str = "") -> ForwardMsg:
    message = ForwardMsg(hash=name + fragment)
    message.metadata.cacheable = True
    message.delta.fragment_id = fragment
    message.delta.new_element.markdown.body = name
    return message


def _end(status: ForwardMsg.ScriptFinishedStatus.ValueType, *fragments: str) -> ForwardMsg:
    message = ForwardMsg(script_finished=status)
    message.metadata.run.fragment_ids.extend(fragments)
    return message


LARGE = st.builds(_large, st.sampled_from("abcd"), st.sampled_from(["", "one", "two"]))
ENDS = st.sampled_from(
    [
        _end(EARLY),
        _end(WHOLE),
        _end(FRAGMENT, "one"),
        _end(FRAGMENT, "two"),
        _end(FRAGMENT, "one", "two"),
    ]
)


@given(st.lists(LARGE | ENDS, max_size=60))
def test_a_page_has_every_message_that_is_named(sent):
    cache, page = BrowserCache(MAX), Page()
    for message in sent:
        assert page.hear(cache.reference(message)) == message


@given(st.lists(LARGE | ENDS, max_size=60), st.data())
def test_a_page_that_counts_an_end_less_has_it_too(sent, data):
    """It counts none that it hears between asking for a run and the run's beginning."""
    cache, page = BrowserCache(MAX), Page()
    for message in sent:
        reference = cache.reference(message)
        is_end = message.WhichOneof("type") == "script_finished"
        if not is_end or data.draw(st.booleans()):
            assert page.hear(reference) == message


def test_what_a_page_holds_is_named_and_what_is_small_is_sent():
    cache = BrowserCache(MAX)
    first = _large("a")
    assert cache.reference(first) is first
    for _run in range(5):
        assert cache.reference(_large("a")).ref_hash == "a"
        cache.reference(_end(WHOLE))
    for _tick in range(10):  # of a fragment: what the page drew is held as before
        cache.reference(_end(FRAGMENT, "one"))
    assert cache.reference(_large("a")).ref_hash == "a"
    for _run in range(MAX + 1):
        cache.reference(_end(WHOLE))
    assert cache.reference(first) is first
    small = ForwardMsg(hash="a")
    small.delta.new_element.markdown.body = "a"
    assert cache.reference(small) is small
    assert cache.reference(small) is small


FORMS: dict[str, Callable[[WidgetState], object]] = {
    "a switch": lambda one: setattr(one, "bool_value", True),
    "no number": lambda one: setattr(one, "double_value", float("nan")),
    "a whole number": lambda one: setattr(one, "int_value", -(2**60)),
    "a text": lambda one: setattr(one, "string_value", "x" * 1000),
    "texts": lambda one: one.string_array_value.data.extend(["a", "b"]),
    "whole numbers": lambda one: one.int_array_value.data.extend([2**40, -1]),
    "numbers": lambda one: one.double_array_value.data.extend([1e308, float("nan")]),
    "no numbers at all": lambda one: one.double_array_value.SetInParent(),
    "bytes": lambda one: setattr(one, "bytes_value", b"\xff\x00"),
    "JSON": lambda one: setattr(one, "json_value", '{"a": [1]}'),
    "a list in JSON": lambda one: setattr(one, "json_value", "[null]"),
    "a trigger": lambda one: setattr(one, "json_trigger_value", '[5, {"event": []}, {}]'),
    "no JSON": lambda one: setattr(one, "json_trigger_value", "{"),
    "nothing": lambda one: None,
}
VALUES = (
    None,
    True,
    -1,
    0,
    10**400,
    1.5,
    "",
    "x",
    "x" * 500,
    [],
    {},
    [None],
    [[[]]],
    [1, 2],
    ["a", 1],
    [1.5, 0],
    [True, False],
    [-1, -1],
    [10**9, 10**9],
    {"a": {"b": []}},
    {"version": 0, "cells": [[]]},
    {"board": "a", "cell": None},
    [None, None],
    [{}, {}],
    ["x", "x"],
    [0, "x" * 500],
)
N_SHARES = 4
"""Parts that the values are cut into; a page gets one."""
COMPONENT_PAGES = {
    "home": {},
    "train": {"run": "recorded-korean"},
    "masks": {},
    "by-hand": {},
    "attention": {"run": "recorded-korean", "tour": "translate.5"},
    **{f"try {view}": {"view": view} for view in ("write", "draw", "scene", "continue")},
    "knockouts": {"run": "recorded-korean"},
    "walk": {"run": "recorded-korean"},
    "build": {},
    "mistakes": {"run": "recorded-digits"},
    "numbers": {},
}


@pytest.fixture
def as_in_the_app(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path))
    monkeypatch.setattr(local_workers, "default_size", lambda: 0)
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)  # put back afterwards
    streamlit_internals.replace_invalid_widget_values()


def widgets(block: Any) -> Iterator[str]:
    """The ids of all widgets of a page."""
    for child in block.children.values():
        name = getattr(getattr(child, "proto", None), "id", "")
        if isinstance(name, str) and name.startswith("$$"):
            yield name
        if hasattr(child, "children"):
            yield from widgets(child)


ROUNDS = 3
"""Messages to a page: in each, one widget gets another form than its neighbour."""


@pytest.mark.core(2)
@pytest.mark.usefixtures("as_in_the_app")
@pytest.mark.parametrize("name", ["train", "runs", "sweeps", "positions", "practice", "own-data"])
def test_values_of_other_types_sent_to_every_widget_break_no_page(name):
    page = PAGES[name.partition(" ")[0]]
    app, forms = opened_at(page.file), list(FORMS.values())
    assert set(widgets(app._tree))
    for number in range(ROUNDS):
        states = WidgetStates()
        for place, name in enumerate(sorted(set(widgets(app._tree)))):
            one = states.widgets.add(id=name)
            forms[(place * ROUNDS + number + len(page.name)) % len(forms)](one)
        app = app._run(states)


@pytest.mark.usefixtures("as_in_the_app")
def test_a_whole_number_is_taken_and_an_empty_box_takes_its_first_choice():
    """A browser sends it as int_value to a number input, which Streamlit calls a double_value."""
    app = opened_at(PAGES["train"].file)
    layers = int(app.number_input[0].value)
    states = WidgetStates()
    states.widgets.add(id=app.number_input[0].proto.id, int_value=layers + 1)
    app = app._run(states)
    assert app.number_input[0].value == layers + 1
    """Between two looks of a fragment no script says again what the box holds."""
    states = WStates()
    states.set_widget_metadata(WidgetMetadata("box", lambda text: text, str, "string_value"))
    for text in (None, "first", None, "second"):
        sent = WidgetState(id="box")
        if text is not None:
            sent.string_value = text
        states.set_widget_from_proto(sent)
        assert states["box"] == text


@pytest.mark.core(3)
@pytest.mark.usefixtures("as_in_the_app")
@pytest.mark.parametrize("name", COMPONENT_PAGES)
def test_values_of_every_form_sent_to_a_component_break_no_page(name, monkeypatch):
    """As a state and as a trigger, for every event that a component of ours has."""
    events: dict[str, set[str]] = {}  # by the id of the component
    known = main.make_bidi_component_presenter

    def spied(trigger: str, component: str, allowed: set[str] | None) -> Any:
        events[component], triggers[component] = allowed or set(), trigger
        return known(trigger, component, allowed)

    triggers: dict[str, str] = {}
    monkeypatch.setattr(main, "make_bidi_component_presenter", spied)
    page = PAGES[name.partition(" ")[0]]
    app = opened_at(page.file, **COMPONENT_PAGES[name])
    assert any(events.values())
    start = list(COMPONENT_PAGES).index(name) % N_SHARES
    for number, value in enumerate(VALUES[start::N_SHARES]):
        told = {event: value for group in events.values() for event in group}
        trigger = json.dumps([{"event": event, "value": value} for event in told])
        states = WidgetStates()
        for component, its_trigger in triggers.items():
            if number:  # the first message has no state beside the triggers
                states.widgets.add(id=component, json_value=json.dumps(told))
            states.widgets.add(id=its_trigger, json_trigger_value=trigger)
        app = app._run(states)


WHILE_PANDAS = """
import sys, types
from importlib.machinery import ModuleSpec
import app
begun = types.ModuleType("pandas")
begun.__spec__ = ModuleSpec("pandas", None)
begun.__spec__._initializing = True
sys.modules["pandas"] = begun
import plotly.graph_objects as go
figure = go.Figure(go.Scatter(y=[1, 2], hovertemplate="%{y}", name="a"))
assert list(figure.data[0].y) == [1, 2]
figure.to_json()
"""


def test_a_figure_is_made_while_pandas_is_being_imported():
    ended = subprocess.run([sys.executable, "-c", WHILE_PANDAS], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
