"""Controls: operation, parameters and inputs, kept in the link."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.i18n import _
from pages.tensors.link import OPERATION, OWN, PARAMETERS, elsewhere, key_of
from pages.ui import typed
from pages.ui.address import view_link
from pages.ui.address.parameters import Choice, Text
from pages.ui.fact_line import fact_line, joined
from tfm_core.inspect.tensors import text
from tfm_core.inspect.tensors.mistakes import MISTAKES, RefusedCall
from tfm_core.inspect.tensors.operations import OPERATIONS, Argument, TensorOperation, Values
from tfm_core.inspect.tensors.sight import Dtype, InputSpec, read


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
                typed[part.name] = _parameter(chosen, part)
    return source, read(chosen, typed), second


def _parameter(chosen: TensorOperation, parameter: Argument) -> str:
    choice = PARAMETERS[chosen.name][parameter.name]
    if isinstance(choice, Choice):
        return view_link.listed(_(parameter.label), choice)
    return _text(_(parameter.label), choice, _(parameter.help))


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
                _(MISTAKES[name].title), key=f"mistake-{where}-{name}", on_click=_set_up,
                args=(MISTAKES[name],)
            )  # fmt: skip


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
