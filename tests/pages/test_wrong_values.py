"""Messages that no browser sends: a widget that is sent another type keeps its default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2.bidi_component import main
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.session_state import WStates

from pages import wrong_values
from pages.ui.page_table import PAGES, PageFacts
from tests.pages.opening import opened_at

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
    None, True, -1, 0, 10**400, 1.5, "", "x", "x" * 500, [], {}, [None], [[[]]], [1, 2],
    ["a", 1], [1.5, 0], [True, False], [-1, -1], [10**9, 10**9], {"a": {"b": []}},
    {"version": 0, "cells": [[]]}, {"board": "a", "cell": None}, [None, None], [{}, {}],
    ["x", "x"], [0, "x" * 500],
)  # fmt: skip
N_SHARES = 4
"""Parts that the values are cut into; a page gets one."""
COMPONENT_PAGES = {
    "home": {}, "draw": {}, "train": {"run": "recorded-korean"}, "masks": {}, "by-hand": {},
    "attention": {"run": "recorded-korean"}, "translate": {"run": "recorded-korean"},
    "knockouts": {"run": "recorded-korean"}, "walk": {"run": "recorded-korean"}, "build": {},
    "mistakes": {"run": "recorded-digits"}, "captions": {}, "gpt": {}, "words": {},
}  # fmt: skip


@pytest.fixture(autouse=True)
def as_in_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path))
    monkeypatch.setenv("TFM_WARM_WORKERS", "0")
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)  # put back afterwards
    wrong_values.forget_wrong_values()


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


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_values_of_other_types_sent_to_every_widget_break_no_page(page: PageFacts) -> None:
    app, forms = opened_at(page.file), list(FORMS.values())
    assert set(widgets(app._tree))
    for number in range(ROUNDS):
        states = WidgetStates()
        for place, name in enumerate(sorted(set(widgets(app._tree)))):
            one = states.widgets.add(id=name)
            forms[(place * ROUNDS + number + len(page.name)) % len(forms)](one)
        app = app._run(states)
        assert not app.exception, number


def test_a_whole_number_of_a_browser_is_taken() -> None:
    """A browser sends it as int_value to a number input, which Streamlit calls a double_value."""
    app = opened_at(PAGES["train"].file)
    layers = int(app.number_input[0].value)
    states = WidgetStates()
    states.widgets.add(id=app.number_input[0].proto.id, int_value=layers + 1)
    app = app._run(states)
    assert not app.exception
    assert app.number_input[0].value == layers + 1


@pytest.mark.parametrize("name", COMPONENT_PAGES)
def test_values_of_every_form_sent_to_a_component_break_no_page(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a state and as a trigger, for every event that a component of ours has."""
    events: dict[str, set[str]] = {}  # by the id of the component
    known = main.make_bidi_component_presenter

    def spied(trigger: str, component: str, allowed: set[str] | None) -> Any:
        events[component], triggers[component] = allowed or set(), trigger
        return known(trigger, component, allowed)

    triggers: dict[str, str] = {}
    monkeypatch.setattr(main, "make_bidi_component_presenter", spied)
    page = PAGES[name]
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
        assert not app.exception, value
