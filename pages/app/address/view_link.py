"""The address of the page in sight: what links ask for, and what the page itself writes there.

``read`` and ``write`` connect a parameter to a widget, before and after it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app.address.parameters import Parameter
from pages.app.typed import escape

T = TypeVar("T")

_LINKED = "-linked"  # ends the keys of what a page wrote to the address
ASKED = f"asked-fields{_LINKED}"
"""The parameters that the page in sight asks for, by their names in the address."""


def query() -> dict[str, str]:
    return st.query_params.to_dict()


def put(changes: Mapping[str, str | None]) -> None:
    """Change the address in one step, one entry of the browser's history; None removes."""
    old = query()
    new = {**old, **changes}
    query_with_changes = {name: text for name, text in new.items() if text is not None}
    if query_with_changes != old:
        st.query_params.from_dict(query_with_changes)
        if st.session_state.get(_IS_SETTLED) and set(changes) - {"run", "lang"}:
            st.session_state[_IS_CHANGED] = True


_IS_SETTLED = "view-settled"
_IS_CHANGED = "view-changed"


def mark_drawn() -> None:
    """Count changes of the address as the reader's from now on: the page is drawn."""
    st.session_state[_IS_SETTLED] = True


def reset() -> None:
    """Forget what another page wrote to the address; changes are not the reader's until drawn."""
    st.session_state[_IS_SETTLED] = st.session_state[_IS_CHANGED] = False
    for key in [key for key in st.session_state if str(key).endswith(_LINKED)]:
        del st.session_state[key]


def is_changed() -> bool:
    """Return whether the reader has changed what the page in sight shows."""
    return bool(st.session_state.get(_IS_CHANGED))


def new_value(parameter: Parameter[Any]) -> str | None:
    """Return the text of a link that was just opened; None if the page itself wrote it."""
    current = st.query_params.get(parameter.query)
    return None if current == _said(parameter)[0] else current


def read(parameter: Parameter[Any]) -> str:
    """Set a widget to what the link asks for; call it before drawing the widget.

    Returns a sentence where the link asked for what cannot be, until another value is chosen, else
    "".
    """
    text, key = new_value(parameter), parameter.key
    is_kept = key in st.session_state and parameter.fits(st.session_state[key])
    if text is None and key not in st.session_state and _said(parameter)[1] == parameter.key:
        text = st.query_params.get(parameter.query)  # the browser went back to what was left
    value = parameter.value(st.session_state[key]) if is_kept else parameter.first
    if is_kept and _is_chosen(parameter, value):
        text = None  # a slow line brings the address as it was before the choice
    problem = f"{key}-problem{_LINKED}"
    if text is not None:
        value, sentence = parameter.follow(text, value)
        st.session_state[problem] = (value, sentence)
    if text is not None or not is_kept:
        st.session_state[key] = parameter.state(value)
    of, sentence = st.session_state.get(problem, (value, ""))
    return str(sentence) if of == value else ""


def send() -> None:
    """Have the browser show the address, as it does not where a link leads to its own page."""
    st.query_params.from_dict(query())


def follow(parameter: Parameter[Any]) -> None:
    """Let go of a value that the address no longer has; show a new address."""
    text = st.query_params.get(parameter.query)
    if text is None:
        st.session_state.pop(parameter.key, None)
    if text != _said(parameter)[0]:
        send()


def write(parameter: Parameter[T], value: T) -> None:
    """Write a value to the link, unless it is the default."""
    text = parameter.text(value) if parameter.in_url(value) else None
    put({parameter.query: text})
    st.session_state[f"{parameter.query}{_LINKED}"] = (text, parameter.key)
    st.session_state[f"{parameter.key}-drawn{_LINKED}"] = value


def _is_chosen(parameter: Parameter[T], value: T) -> bool:
    """Return whether the reader has chosen another value since the widget was drawn."""
    return bool(st.session_state.get(f"{parameter.key}-drawn{_LINKED}", value) != value)


def clear(gone: Iterable[Parameter[Any]]) -> None:
    """Remove parameters from the link; the session keeps them."""
    present = [parameter for parameter in gone if parameter.query in st.query_params]
    put({parameter.query: None for parameter in present})
    for parameter in present:
        st.session_state[f"{parameter.query}{_LINKED}"] = (None, parameter.key)


_WARNINGS: ContextVar[DeltaGenerator | None] = ContextVar("_WARNINGS", default=None)


@contextmanager
def warnings_in(place: DeltaGenerator) -> Iterator[None]:
    """Show what the link has wrong in a place: the controls themselves are not always in sight."""
    before = _WARNINGS.set(place)
    try:
        yield
    finally:
        _WARNINGS.reset(before)


def warnings_place() -> DeltaGenerator:
    """Return where to show what the link has wrong."""
    return _WARNINGS.get() or st.container()


def warn(problem: str) -> None:
    """Show a problem of the link, in a place that stays so that nothing moves."""
    with warnings_place():
        if problem:
            st.warning(escape(problem), icon=":material/link_off:")


def _said(parameter: Parameter[Any]) -> tuple[str | None, str]:
    """Return what the page itself wrote to the address, and by the key of which widget."""
    said: tuple[str | None, str] = st.session_state.get(
        f"{parameter.query}{_LINKED}", (None, parameter.key)
    )
    return said
