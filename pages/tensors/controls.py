"""Controls: operation, parameters and inputs, kept in the link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import streamlit as st

from pages.i18n import N_, _
from pages.ui import typed
from pages.ui.address import parameters, view_link
from pages.ui.address.parameters import Choice, Text
from pages.ui.fact_line import fact_line, joined
from tfm_core.inspect.tensors import text
from tfm_core.inspect.tensors.mistakes import MISTAKES, RefusedCall
from tfm_core.inspect.tensors.operations import OPERATIONS, TensorOperation, Values
from tfm_core.inspect.tensors.sight import PREPARED, Dtype, InputSpec, read

MAX_LETTERS = 40  # of a shape or a parameter
OWN = "own"
OPERATION = Choice("op", names=tuple(OPERATIONS), first="view")
_CONTENT = {"arange": N_("0, 1, 2 …"), OWN: N_("Own numbers")}


def operation() -> TensorOperation:
    """Choose the operation; a link may hold it."""
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    with left:
        chosen = OPERATIONS[view_link.listed(_("Operation"), OPERATION)]
    with right:
        st.markdown(_(chosen.help))
    view_link.forget(elsewhere(chosen))
    return chosen


def inputs(chosen: TensorOperation) -> tuple[InputSpec, Values, tuple[int, ...] | None]:
    """Ask for the first input, the parameters and the shape of b. Raises ValueError."""
    source = InputSpec((1,))
    second = None
    if chosen.kind != "makes":
        source = _source(chosen)
    if chosen.second is not None:
        second = text.shape_of(_shape(chosen, "second", _("Shape of b")), "b")
    typed = {}
    for start in range(0, len(chosen.parameters), 2):
        pair = chosen.parameters[start : start + 2]
        for column, part in zip(st.columns(len(pair)), pair, strict=True):
            with column:
                choice, label = PARAMETERS[chosen.name][part.name], _(part.label)
                typed[part.name] = (
                    view_link.listed(label, choice)
                    if isinstance(choice, Choice)
                    else _text(label, choice, _(part.help))
                )
    return source, read(chosen, typed), second


def _text(label: str, parameter: Text, help: str) -> str:
    cut = view_link.receive(parameter)
    text = st.text_input(label, key=parameter.query, help=help)
    view_link.warn(cut)
    view_link.say(parameter, text)
    return typed.within(text, parameter.most)


def _shape(chosen: TensorOperation, name: str, label: str) -> str:
    words = _("One to four whole numbers, at most 64 elements: 2, 3.")
    return _text(label, _written(chosen, name), words)


def _source(chosen: TensorOperation) -> InputSpec:
    facts, choices = fact_line("tensors")
    problems = st.container()
    shape = text.shape_of(_shape(chosen, "shape", _("Shape of x")))
    offered = {name: _named(chosen, name) for name in ("prepared", "content", "dtype")}
    with choices, view_link.warnings_in(problems):
        prepared = view_link.listed(
            _("x is then"),
            offered["prepared"],
            help=_("A transposed or sliced tensor reads its memory in another order."),
        )
        content = view_link.choice(_("Content"), offered["content"])
        dtype = view_link.choice(_("Type"), offered["dtype"])
    picked = {"prepared": prepared, "content": content, "dtype": dtype}
    labels = [_(offered[name].labels.get(value, value)) for name, value in picked.items()]
    facts.caption(joined(_("x: {how}", how=labels[0]), *labels[1:]))
    numbers = _numbers(chosen, shape) if content == OWN else None
    whole: Dtype = "int64" if dtype == "int64" else "float32"
    if whole == "int64" and numbers is not None and any(n != int(n) for n in numbers):
        raise ValueError(_("int64 holds whole numbers only: take float32 for 2.5."))
    return InputSpec(shape, numbers, whole, prepared)


def _named(chosen: TensorOperation, name: str) -> Choice:
    choice = PARAMETERS[chosen.name][name]
    assert isinstance(choice, Choice)
    return choice


def _written(chosen: TensorOperation, name: str) -> Text:
    choice = PARAMETERS[chosen.name][name]
    assert isinstance(choice, Text)
    return choice


def _numbers(chosen: TensorOperation, shape: tuple[int, ...]) -> tuple[float, ...]:
    count = 1
    for size in shape:
        count *= size
    counted = ", ".join(str(n) for n in range(count))
    parameter = _written(chosen, "numbers")
    if shape != text.shape_of(chosen.shape) or not chosen.numbers:
        parameter = replace(parameter, first=counted)
    words = _("As many as fit the shape.")
    return text.numbers_of(_text(_("Numbers"), parameter, words), count)


def own_mistakes(chosen: TensorOperation) -> None:
    names = [name for name, mistake in MISTAKES.items() if mistake.operation == chosen.name]
    if names:
        st.caption(_("Common errors"))
        _buttons(names, "own")


def gallery() -> None:
    label = _("Try all {n} common errors", n=len(MISTAKES))
    with st.expander(label, icon=":material/error:"):
        _buttons(list(MISTAKES), "all")


def _buttons(names: list[str], where: str) -> None:
    with st.container(horizontal=True, gap="small"):
        for name in names:
            st.button(
                _(MISTAKES[name].title),
                key=f"mistake-{where}-{name}",
                on_click=_set_up,
                args=(MISTAKES[name],),
            )


def _set_up(mistake: RefusedCall) -> None:
    chosen = OPERATIONS[mistake.operation]
    settings = {parameter.name: parameter.default for parameter in chosen.parameters}
    settings |= {"shape": mistake.shape, "prepared": mistake.prepared, "content": "arange"}
    settings |= {"dtype": mistake.dtype, **mistake.texts}
    if chosen.kind == "makes":
        settings = {
            name: settings[name] for name in (parameter.name for parameter in chosen.parameters)
        }
    if chosen.second is not None:
        settings["second"] = mistake.second or chosen.second
    st.session_state[OPERATION.query] = chosen.name
    for name, value in settings.items():
        st.session_state[key_of(chosen, name)] = value


def key_of(chosen: TensorOperation, name: str) -> str:
    """Return the name of a control of an operation, which is also its name in a link."""
    return f"{chosen.name.replace(' ', '-').lower()}-{name}"


def _parameters_of(chosen: TensorOperation) -> Iterator[tuple[str, Choice | Text]]:
    for one in chosen.parameters:
        key = key_of(chosen, one.name)
        if one.choices:
            yield one.name, Choice(key, names=one.choices, first=one.choices[0])
        else:
            yield one.name, Text(key, first=one.default, most=MAX_LETTERS)
    if chosen.second is not None:
        yield "second", Text(key_of(chosen, "second"), first=chosen.second, most=MAX_LETTERS)
    if chosen.kind == "makes":
        return
    yield "shape", Text(key_of(chosen, "shape"), first=chosen.shape, most=MAX_LETTERS)
    labels = {name: name for name in PREPARED}
    yield "prepared", parameters.named(key_of(chosen, "prepared"), labels)
    start = OWN if chosen.numbers else "arange"
    yield "content", parameters.named(key_of(chosen, "content"), _CONTENT, first=start)
    numbers = Text(key_of(chosen, "numbers"), first=chosen.numbers, most=10 * MAX_LETTERS)
    yield "numbers", numbers
    types = ("float32", "int64")
    yield "dtype", Choice(key_of(chosen, "dtype"), names=types, first=types[0])


def elsewhere(chosen: TensorOperation) -> Iterator[Choice | Text]:
    return (
        parameter
        for name, of_operation in PARAMETERS.items()
        for parameter in of_operation.values()
        if name != chosen.name
    )


PARAMETERS: dict[str, dict[str, Choice | Text]] = {
    name: dict(_parameters_of(one)) for name, one in OPERATIONS.items()
}
"""Operation -> name of a control -> its parameter in the link."""
