"""What a page shows, in its address: a view is a frozen dataclass of ``linked`` parameters.

``read`` makes a view of any link, with messages on what is invalid; ``write`` makes the link of a
view. Both are pure. ``receive`` and ``say`` connect a parameter to a widget, before and after it is
drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, TypeVar, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _
from pages.ui.address.parameters import Choice, Parameter
from pages.ui.typed import escape

T = TypeVar("T")
V = TypeVar("V")

_PARAMETER = "parameter"  # in the metadata of a field
_LINKED = "-linked"  # ends the keys of what a page wrote to the address


def linked(parameter: Parameter[T]) -> T:
    """Declare a field of a view that is kept in the address."""
    made: Any = field(default=parameter.first, metadata={_PARAMETER: parameter})
    return cast(T, made)


def parameters(kind: type[Any]) -> dict[str, Parameter[Any]]:
    """Return the parameters of a view by field name."""
    fields = dataclasses.fields(kind)
    return {each.name: each.metadata[_PARAMETER] for each in fields if _PARAMETER in each.metadata}


def read(
    kind: type[V], query: Mapping[str, str], /, **fitting: Parameter[Any]
) -> tuple[V, tuple[str, ...]]:
    """Return the view nearest to a link, and a message for each change.

    fitting: parameters as narrow as what there is to show makes them, by the name of the field.
    """
    values, sentences = {}, []
    for name, declared in parameters(kind).items():
        parameter = fitting.get(name, declared)
        text = query.get(parameter.query)
        values[name] = parameter.first
        if text is not None:
            values[name], sentence = parameter.follow(text, parameter.first)
            sentences += [sentence] if sentence else []
    return kind(**values), tuple(sentences)


def write(view: Any) -> dict[str, str]:
    """Return the query that opens this view again."""
    return {
        parameter.query: parameter.text(getattr(view, name))
        for name, parameter in parameters(type(view)).items()
        if parameter.is_said(getattr(view, name))
    }


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


_IS_SETTLED, _IS_CHANGED = "view-settled", "view-changed"


def settle() -> None:
    """Count changes of the address as the reader's from now on: the page is drawn."""
    st.session_state[_IS_SETTLED] = True


def leave() -> None:
    """Forget what another page wrote to the address; changes are not the reader's until drawn."""
    st.session_state[_IS_SETTLED] = st.session_state[_IS_CHANGED] = False
    for key in [key for key in st.session_state if str(key).endswith(_LINKED)]:
        del st.session_state[key]


def is_changed() -> bool:
    """Return whether the reader has changed what the page in sight shows."""
    return bool(st.session_state.get(_IS_CHANGED))


def opened(parameter: Parameter[Any]) -> str | None:
    """Return the text of a link that was just opened; None if the page itself wrote it."""
    current = st.query_params.get(parameter.query)
    return None if current == st.session_state.get(_seen(parameter)) else current


def receive(parameter: Parameter[Any], key: str = "") -> str:
    """Set a widget to what the link asks for; call it before drawing the widget.

    key: of the widget, where it is not the parameter's own. Returns a sentence where the link asks
    for what cannot be, else "".
    """
    text = opened(parameter)
    key = key or parameter.key or parameter.query
    is_kept = key in st.session_state and parameter.fits(st.session_state[key])
    if text is None and not is_kept:  # the browser went back to a page that was left
        text = st.query_params.get(parameter.query)
    value = parameter.value(st.session_state[key]) if is_kept else parameter.first
    sentence = ""
    if text is not None:
        value, sentence = parameter.follow(text, value)
    if text is not None or not is_kept:
        st.session_state[key] = parameter.state(value)
    return sentence


def say(parameter: Parameter[T], value: T) -> None:
    """Write a value to the link, unless it is the default."""
    text = parameter.text(value) if parameter.is_said(value) else None
    put({parameter.query: text})
    st.session_state[_seen(parameter)] = text


def forget(gone: Iterable[Parameter[Any]]) -> None:
    """Remove parameters from the link; the session keeps them."""
    present = [parameter for parameter in gone if parameter.query in st.query_params]
    put({parameter.query: None for parameter in present})
    for parameter in present:
        st.session_state[_seen(parameter)] = None


def choice(
    label: str,
    parameter: Choice,
    *,
    help: str | None = None,
    is_labelled: bool = True,
) -> str:
    """Draw a segmented control that is kept in the link; return the chosen name."""
    problem = receive(parameter)
    picked = st.segmented_control(
        label,
        list(parameter.names),
        format_func=lambda name: _(parameter.labels.get(name, name)),
        required=True,
        key=parameter.key or parameter.query,
        persist_state="session",
        wrap=True,
        help=help,
        label_visibility="visible" if is_labelled else "collapsed",
    )
    warn(problem)
    chosen = str(picked) if picked in parameter.names else parameter.first
    say(parameter, chosen)
    return chosen


def listed(
    label: str,
    parameter: Choice,
    *,
    help: str | None = None,
) -> str:
    """Draw a list that opens and is kept in the link; return the chosen name."""
    problem = receive(parameter)
    picked = st.selectbox(
        label,
        parameter.names,
        format_func=lambda name: _(parameter.labels[name]) if name in parameter.labels else name,
        key=parameter.key or parameter.query,
        persist_state="session",
        help=help,
    )
    warn(problem)
    say(parameter, picked)
    return picked


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


def _seen(parameter: Parameter[Any]) -> str:
    return f"{parameter.key or parameter.query}{_LINKED}"


def saved_step(parameter: Parameter[int], steps: tuple[int, ...]) -> int:
    """Return the step of ``steps`` that is asked for; the link has it unless it is the newest.

    parameter: its ``first`` means the newest, whichever that is.
    """
    newest, problem = parameter.first, receive(parameter)
    requested = int(st.session_state[parameter.key])
    nearest = min(steps, key=lambda step: abs(step - requested))
    chosen = steps[-1] if requested == newest else nearest
    if requested not in (newest, chosen):
        values = {"requested": f"{requested:,}", "step": f"{chosen:,}"}
        problem = problem or _("No weights at step {requested}; showing step {step}.", **values)
    warn(problem)
    st.session_state[parameter.key] = newest if chosen == steps[-1] else chosen
    say(parameter, st.session_state[parameter.key])
    return chosen


def weights_step(parameter: Parameter[int], steps: tuple[int, ...]) -> int:
    """Draw the choice of the step whose weights are shown, as ``saved_step`` reads it."""
    st.session_state[parameter.key] = chosen = saved_step(parameter, steps)
    if len(steps) > 1:
        st.select_slider(
            _("Weights of step"),
            steps,
            format_func=lambda n: f"{n:,}",
            key=parameter.key,
            persist_state="session",
        )
    else:
        st.caption(_("Weights of step **{step}**, the only ones saved.", step=f"{chosen:,}"))
    return chosen
