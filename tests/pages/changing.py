"""Every control of a page changed, one after the other, as the browser would send it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamlit.testing.v1 import AppTest

DEAR = ("training-step-apart-", "knockouts-how", "walk-range-")
"""What the keys of controls begin with that train a model or measure it anew."""


def changed_once(app: AppTest, *, most: int) -> Iterator[str]:
    """Give each control another value, and pills each of theirs, ``most`` in all; yield the key."""
    done: set[tuple[str, str]] = set()
    while len(done) < most:
        states = app._tree.get_widget_states()
        by_id = {state.id: state for state in states.widgets}
        for node in app._tree:
            key = str(getattr(node, "key", None) or "")
            state = by_id.get(getattr(node, "id", ""))
            change = key and state is not None and _change(node, state, done)
            if change:
                break
        else:
            return
        done.add((key, change))
        app._run(states)
        yield key


def _change(node: Any, state: Any, done: set[tuple[str, str]]) -> str:
    """Give a control another value; return what was changed, or "" where that was done."""
    proto, kind, key = node.proto, node.type, str(node.key)
    is_closed = getattr(proto, "disabled", False) or getattr(proto, "form_id", "")
    if is_closed or key.startswith(DEAR):
        return ""
    if kind == "button_group" and len(node.options) > 1:
        chosen = state.string_array_value.data
        done |= {(key, one) for one in chosen}
        for option in node.options:
            if (key, option) not in done:
                chosen[:] = [option]
                return str(option)
        return ""
    if (key, "once") in done:
        return ""
    if kind in ("checkbox", "toggle"):
        state.bool_value = not state.bool_value
    elif kind in ("selectbox", "radio") and len(node.options) > 1:
        options = list(node.options)
        at = options.index(state.string_value) if state.string_value in options else -1
        state.string_value = options[(at + 1) % len(options)]
    elif kind == "number_input":
        step = proto.step or 1
        up = state.double_value + step
        state.double_value = up if not proto.has_max or up <= proto.max else up - 2 * step
    elif kind == "slider":
        data, step = state.double_array_value.data, proto.step or 1
        data[-1] += step if data[-1] + step <= proto.max else -step
    else:
        return ""
    return "once"
