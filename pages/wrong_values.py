"""Values of widgets that no browser sends: a widget that gets one keeps its default.

Whoever writes messages by hand can send a widget a value of another type than its own. Streamlit's
deserialisers and the pages assume the right one, and an error would end the drawing of the page.
"""

from __future__ import annotations

import logging
from typing import Any

from streamlit.elements.widgets.selectbox import SelectboxSerde
from streamlit.runtime.state.session_state import Serialized, Value, WStates

logger = logging.getLogger(__name__)

_NUMBERS = {"int_value", "double_value"}
"""A browser sends the whole numbers of a number input as int_value, whatever Streamlit calls it."""

_read = WStates.__getitem__


def _read_or_default(states: WStates, key: str) -> Any:
    """Return the value of a widget, its default where it was sent none that it can have.

    Raises KeyError where it was sent nothing.
    """
    sent, facts = states.states.get(key), states.widget_metadata.get(key)
    if facts is None or not isinstance(sent, Serialized):
        return _read(states, key)
    kind = sent.value.WhichOneof("value")
    try:
        if kind not in (None, facts.value_type) and not {kind, facts.value_type} <= _NUMBERS:
            raise TypeError(f"{kind}, not {facts.value_type}")
        _check_option(facts.deserializer, sent.value.string_value if kind else "")
        return _read(states, key)
    except Exception as error:
        logger.warning("A widget was sent a value that it cannot have: %s", error)
    value = facts.deserializer(None)
    states.states[key] = Value(value)
    return value


def _check_option(deserializer: object, text: str) -> None:
    """Raise ValueError for a text that is no option of a select box, which would be its value."""
    box = getattr(deserializer, "__self__", None)
    if isinstance(box, SelectboxSerde) and text not in {"", *box.formatted_options}:
        raise ValueError("no such option")


def forget_wrong_values() -> None:
    """Have all sessions of this process do so from now on."""
    WStates.__getitem__ = _read_or_default  # type: ignore[method-assign]
