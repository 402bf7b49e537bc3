"""A page's state: a frozen dataclass whose fields are widgets.

    @dataclass(frozen=True)
    class Waves:
        d_model: int = view.pick(N_("d_model"), (32, 64, 128), 64)
        length: int = view.number(N_("Positions"), 8, 256, 96, step=8)

    chosen = view.ask(Waves, "positions")

``ask`` reads each field from the address, with a message on what is invalid, draws its widget, and
writes the value back unless it is the default. Values outlive the page in the session. What a page
no longer asks for leaves the address with ``drawing``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app.address.parameters import (
    NEWEST,
    Choice,
    Choices,
    Flag,
    InvalidValue,
    Number,
    Option,
    Parameter,
    SavedStep,
    Text,
    Written,
    named,
)
from pages.app.typed import escape
from pages.i18n import _

V = TypeVar("V")
Condition = Callable[[Any], bool]
FIELD = "view-field"
_MAX_SIDE_BY_SIDE = 7  # choices; more become a list


@dataclasses.dataclass(frozen=True, kw_only=True)
class Field:
    """A widget of a view.

    parameter: how the address says its value. draw: Streamlit's function; settings: its arguments,
    of which the functions below take further ones as ``look``.
    when: whether it is shown, by the values of the fields before it. of: what the value is of; of
    another, there is another. holds_for: what the value holds for; for anything else it is the
    default again, unless the link has just asked for it. is_linked: it holds for the address in
    sight alone.
    """

    parameter: Parameter[Any]
    label: str
    draw: Callable[..., Any]
    settings: Mapping[str, Any]
    help: str | Callable[[], str] = ""
    when: Condition = lambda _values: True
    of: str = ""
    holds_for: str = ""
    is_linked: bool = False


def _field(
    parameter: Parameter[Any],
    label: str,
    draw: Callable[..., Any],
    settings: Mapping[str, Any],
    *,
    query: str = "",
    look: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> Any:
    parameter = dataclasses.replace(parameter, query=query or parameter.query)
    settings = {**settings, **look}
    made = Field(parameter=parameter, label=label, draw=draw, settings=settings, **more)
    return dataclasses.field(default=parameter.first, metadata={FIELD: made})


def choice(
    label: str,
    labels: Mapping[str, str],
    default: str | None = None,
    *,
    always_in_url: bool = False,
    is_list: bool | None = None,
    **more: Any,
) -> Any:
    """Offer names by their labels, side by side or, where they are many, in a list."""
    parameter = named("", labels, first=default, always_in_url=always_in_url)
    settings: dict[str, Any] = {
        "options": parameter.names,
        "format_func": lambda name: _(labels.get(name, name)),
    }
    if len(labels) > _MAX_SIDE_BY_SIDE if is_list is None else is_list:
        return _field(parameter, label, st.selectbox, settings, **more)
    settings |= {"required": True, "wrap": True}
    return _field(parameter, label, st.segmented_control, settings, **more)


def choices(
    label: str,
    labels: Mapping[str, str],
    default: Sequence[str] = (),
    *,
    maximum: int | None = None,
    is_sorted: bool = False,
    **more: Any,
) -> Any:
    """Offer names of which several can be chosen."""
    names = tuple(labels)
    parameter = Choices("", first=tuple(default), names=names, maximum=maximum, is_sorted=is_sorted)
    settings = {"options": names, "format_func": lambda name: _(labels[name])}
    return _field(parameter, label, st.multiselect, {**settings, "max_selections": maximum}, **more)


def number(
    label: str,
    low: int,
    high: int,
    default: int,
    *,
    step: int = 1,
    offset: int = 0,
    is_typed: bool = False,
    **more: Any,
) -> Any:
    """Offer whole numbers on a slider, or to type one.

    offset: people count from there, the code from 0.
    """
    parameter = Number("", first=default, low=low, high=high, offset=offset)
    if offset:
        settings = {
            "options": tuple(range(low, high + 1)),
            "format_func": lambda n: str(n + offset),
        }
        return _field(parameter, label, st.selectbox, settings, **more)
    settings = {"min_value": low, "max_value": high, "step": step}
    draw = st.number_input if is_typed else st.slider
    return _field(parameter, label, draw, settings, **more)


def pick(
    label: str,
    options: Sequence[float],
    default: float,
    *,
    form: str = "{:,.0f}",
    **more: Any,
) -> Any:
    """Offer a few numbers on a slider."""
    parameter = Option("", first=default, options=tuple(options))
    settings = {"options": tuple(options), "format_func": form.format}
    return _field(parameter, label, st.select_slider, settings, **more)


def slide(label: str, names: Sequence[str], default: str, **more: Any) -> Any:
    """Offer names on a slider, in their order."""
    parameter = Choice("", first=default, names=tuple(names))
    return _field(parameter, label, st.select_slider, {"options": tuple(names)}, **more)


def saved_step(label: str, steps: tuple[int, ...], **more: Any) -> Any:
    """Offer the steps that a run kept on a slider."""

    def words(step: int) -> str:
        return _("step {step}", step=f"{steps[-1] if step == NEWEST else step:,}")

    settings = {"options": (*steps[:-1], NEWEST), "format_func": words}
    return _field(SavedStep("", steps=steps), label, st.select_slider, settings, **more)


def flag(label: str, *, default: bool = False, **more: Any) -> Any:
    """Offer to switch something on."""
    return _field(Flag("", first=default), label, st.toggle, {}, **more)


def text(label: str, default: str, most: int, *, is_long: bool = False, **more: Any) -> Any:
    """Ask for a line, or for more; more than ``most`` characters are kept out of the address."""
    draw = st.text_area if is_long else st.text_input
    return _field(Text("", first=default, most=most), label, draw, {}, **more)


def held(parameter: Parameter[Any], **more: Any) -> Any:
    """Keep a value that something else than a widget changes, in the session under its key."""

    def value_of(_label: str, *, value: object, **_shared: object) -> object:
        return value

    return _field(parameter, "", value_of, {}, **more)


def written(
    form: str,
    rule: str,
    read: Callable[..., object] = str,
    write: Callable[[Any], str] = str,
    *,
    default: Any = None,
    **more: Any,
) -> Any:
    """Keep a value that has its own notation in links, as ``held`` does.

    form: a regular expression, whose groups ``read`` gets, or all of the text where it has none; it
    returns None for what cannot be. rule: the form in words.
    """

    def made(text: str) -> object:
        match = re.fullmatch(form, text)
        value = None if match is None else read(*(match.groups() or [text]))
        if value is None:
            raise InvalidValue(_(rule))
        return value

    def text(value: object) -> str:
        return "" if value is None else write(value)

    return held(Written("", first=default, reader=made, writer=text), **more)


def put(scope: str, /, **values: object) -> None:
    """Change values of a view; the page shows them as soon as it asks for them again."""
    for name, value in values.items():
        st.session_state[f"{scope}-{name}"] = value


def linked(names: Iterable[str]) -> Any:
    """Keep the name of what links open: none where the address has none, whatever was open."""
    return held(Choice("", first="", names=tuple(names)), is_linked=True)


def by(make: Callable[[Any], Any]) -> Any:
    """Declare a field that depends on the values of the fields before it, such as its range."""
    return dataclasses.field(default=None, metadata={FIELD: make})


def fields(kind: type[Any], scope: str, /, **changed: Any) -> dict[str, Field]:
    """Return the fields of a view as they are at first, with the names of their parameters."""
    values, found = SimpleNamespace(), {}
    for name, declared in _declared(kind, changed):
        found[name] = placed(declared, name, scope, values)
        setattr(values, name, found[name].parameter.first)
    return found


def _declared(kind: type[Any], changed: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(kind):
        yield field.name, changed.get(field.name, field)


def ask(
    kind: type[V],
    scope: str,
    /,
    *,
    columns: int | Sequence[float] = 0,
    places: Mapping[str, DeltaGenerator] = MappingProxyType({}),
    hidden: Collection[str] = (),
    **changed: Any,
) -> V:
    """Draw the widgets of a view and return its state.

    scope: of the keys, so that two pages have values of their own. columns: to lay the widgets in.
    places: of single widgets, by field. hidden: fields that are not asked for. changed: fields as
    what there is to show makes them, by name, made by the same functions.
    """
    cells = iter(st.columns(columns, vertical_alignment="bottom") if columns else ())
    values = SimpleNamespace()
    for name, declared in _declared(kind, changed):
        field = placed(declared, name, scope, values)
        setattr(values, name, field.parameter.first)
        if name in hidden or not field.when(values):
            clear_query([field.parameter])
            continue
        with places.get(name) or next(cells, None) or nullcontext():
            setattr(values, name, drawn(field))
    return kind(**vars(values))


def one(field: Any, name: str, scope: str) -> Any:
    """Draw a single widget, made by the functions above, and return its value."""
    return drawn(placed(field, name, scope))


def placed(declared: Any, name: str, scope: str, values: object = None) -> Field:
    """Return a field with the name of its parameter in the address, and the key of its widget."""
    field: Field | Callable[[object], Any] = declared.metadata[FIELD]
    if not isinstance(field, Field):
        return placed(field(values), name, scope)
    query = field.parameter.query or name.replace("_", "-")
    key = "-".join(filter(None, (scope, field.of, name)))
    parameter = dataclasses.replace(field.parameter, query=query, key=key)
    return dataclasses.replace(field, parameter=parameter)


def drawn(field: Field) -> Any:
    """Draw the widget of a field that has its place, and return its value."""
    parameter = field.parameter
    if isinstance(parameter, Number) and parameter.low == parameter.high:  # a slider needs two
        return parameter.low
    if field.holds_for:
        before = st.session_state.get(f"{parameter.key}-for", field.holds_for)
        if before != field.holds_for and new_value(parameter) is None:
            st.session_state.pop(parameter.key, None)  # it was chosen for something else
            clear_query([parameter])
        hold(parameter.key, field.holds_for)
    if field.is_linked:
        linked = st.query_params.get(parameter.query)
        if linked is None:
            st.session_state.pop(parameter.key, None)
        if linked != _written(parameter)[0]:
            send_query()
    problem = read_query(parameter)
    state = widget(
        field, st.session_state[parameter.key], key=parameter.key, persist_state="session"
    )
    warn(problem)
    value = parameter.value(state) if parameter.fits(state) else parameter.first
    write_query(parameter, value)
    if (asked := _ASKED.get()) is not None:
        asked[parameter.query] = parameter
    return value


def hold(key: str, holds_for: str) -> None:
    """Let the value of a key hold for something."""
    st.session_state[f"{key}-for"] = holds_for


def chosen_for(key: str, holds_for: str) -> str:
    """Return the name that was chosen under a key, empty if for something else."""
    is_held = st.session_state.get(f"{key}-for") == holds_for
    return str(st.session_state.get(key, "")) if is_held else ""


def widget(field: Field, state: Any, *, lock: str = "", **shared: Any) -> Any:
    """Draw the widget of a field and return its state.

    state: what it has at first, said each time: a browser may miss what the session says. lock: why
    nobody may change it. shared: its key, and what it calls.
    """
    initial: dict[str, Any] = {"value": state}
    if field.draw is st.selectbox:
        options = list(field.settings["options"])
        initial = {"index": options.index(state) if state in options else 0}
    elif field.draw in (st.segmented_control, st.multiselect):
        initial = {"default": state}
    help = field.help() if callable(field.help) else _(field.help)
    settings = dict(field.settings)
    if "placeholder" in settings:
        settings["placeholder"] = _(settings["placeholder"])
    return field.draw(
        _(field.label),
        help=lock or help or None,
        disabled=bool(lock),
        **initial,
        **settings,
        **shared,
    )


_ASKED: ContextVar[dict[str, Parameter[Any]] | None] = ContextVar("_ASKED", default=None)


@contextmanager
def drawing(of: str = "") -> Iterator[None]:
    """Take from the address, afterwards, what the page asked for before and does not any more.

    of: the part of the page that is drawn, where each of several is drawn by itself.
    """
    key = f"{of}{ASKED}"
    asked: dict[str, Parameter[Any]] = {}
    token = _ASKED.set(asked)
    try:
        yield
    finally:
        _ASKED.reset(token)  # what interrupts a page leaves its address alone
    before: Mapping[str, Parameter[Any]] = st.session_state.get(key, {})
    clear_query(parameter for query, parameter in before.items() if query not in asked)
    st.session_state[key] = asked


T = TypeVar("T")

_LINKED = "-linked"  # ends the keys of what a page wrote to the address
ASKED = f"asked-fields{_LINKED}"
"""The parameters that the page in sight asks for, by their names in the address."""


def query() -> dict[str, str]:
    return st.query_params.to_dict()


def put_query(changes: Mapping[str, str | None]) -> None:
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


def forget_query() -> None:
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
    return None if current == _written(parameter)[0] else current


def read_query(parameter: Parameter[Any]) -> str:
    """Set a widget to what the link asks for; call it before drawing the widget.

    Returns a message if the link's value is invalid, until another value is chosen, else "".
    """
    text, key = new_value(parameter), parameter.key
    is_valid = key in st.session_state and parameter.fits(st.session_state[key])
    if text is None and key not in st.session_state and _written(parameter)[1] == parameter.key:
        text = st.query_params.get(parameter.query)  # the browser went back to what was left
    value = parameter.value(st.session_state[key]) if is_valid else parameter.first
    if is_valid and st.session_state.get(f"{key}-drawn{_LINKED}", value) != value:
        text = None  # a slow line brings the address as it was before the reader's choice
    problem = f"{key}-problem{_LINKED}"
    if text is not None:
        value, sentence = parameter.follow(text, value)
        st.session_state[problem] = (value, sentence)
    if text is not None or not is_valid:
        st.session_state[key] = parameter.state(value)
    problem_value, sentence = st.session_state.get(problem, (value, ""))
    return str(sentence) if problem_value == value else ""


def send_query() -> None:
    """Have the browser show the address, as it does not where a link leads to its own page."""
    st.query_params.from_dict(query())


def write_query(parameter: Parameter[T], value: T) -> None:
    """Write a value to the link, unless it is the default."""
    text = parameter.text(value) if parameter.in_url(value) else None
    put_query({parameter.query: text})
    st.session_state[f"{parameter.query}{_LINKED}"] = (text, parameter.key)
    st.session_state[f"{parameter.key}-drawn{_LINKED}"] = value


def clear_query(gone: Iterable[Parameter[Any]]) -> None:
    """Remove parameters from the link; the session keeps them."""
    present = [parameter for parameter in gone if parameter.query in st.query_params]
    put_query({parameter.query: None for parameter in present})
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


def _written(parameter: Parameter[Any]) -> tuple[str | None, str]:
    """Return what the page itself wrote to the address, and by the key of which widget."""
    written: tuple[str | None, str] = st.session_state.get(
        f"{parameter.query}{_LINKED}", (None, parameter.key)
    )
    return written
