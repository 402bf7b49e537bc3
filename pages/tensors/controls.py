"""The operation, its parameters and its inputs, as the user sets them; a link carries them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.i18n import N_, _
from pages.ui import typed, url_choice
from tfm_core.inspect.tensors import text
from tfm_core.inspect.tensors.mistakes import MISTAKES, Mistake
from tfm_core.inspect.tensors.operations import OPERATIONS, Parameter, TensorOperation, Values
from tfm_core.inspect.tensors.sight import PREPARED, Dtype, InputSpec, read

_CONTENT = {"arange": N_("0, 1, 2 …"), "own": N_("Own numbers")}
_OWN = "own"
_LONGEST = 40  # characters of a shape or a parameter


@dataclass(frozen=True, slots=True)
class OperationSetup:
    """An operation with its inputs and parameters."""

    operation: TensorOperation
    source: InputSpec
    values: Values
    second: tuple[int, ...] | None


def operation() -> TensorOperation:
    """Choose the operation; a link may hold it."""
    picked = st.pills(
        _("Operation"), list(OPERATIONS), default="view", required=True, key="op",
        bind="query-params",
    )  # fmt: skip
    return OPERATIONS[picked if picked in OPERATIONS else "view"]


def asked(chosen: TensorOperation) -> OperationSetup:
    """Ask for the inputs and parameters. Raises ValueError, in a sentence."""
    source = InputSpec((1,))
    second = None
    if chosen.kind != "makes":
        source = _source(chosen)
    if chosen.second is not None:
        second = text.shape_of(_field(chosen, "second", _("Shape of b"), chosen.second), "b")
    return OperationSetup(chosen, source, read(chosen, _typed(chosen)), second)


def _typed(chosen: TensorOperation) -> dict[str, str]:
    typed = {}
    for start in range(0, len(chosen.parameters), 2):
        pair = chosen.parameters[start : start + 2]
        for column, one in zip(st.columns(len(pair)), pair, strict=True):
            with column:
                typed[one.name] = _parameter(chosen, one)
    return typed


def _parameter(chosen: TensorOperation, one: Parameter) -> str:
    key = key_of(chosen, one.name)
    if one.choices:
        picked = st.selectbox(_(one.label), one.choices, key=key, bind="query-params")
        return str(picked)
    text = st.text_input(_(one.label), one.default, key=key, help=_(one.help), bind="query-params")
    return typed.within(text, _LONGEST)


def _field(chosen: TensorOperation, name: str, label: str, default: str) -> str:
    text = st.text_input(
        label, default, key=key_of(chosen, name), bind="query-params",
        help=_("One to four whole numbers, at most 64 elements: 2, 3."),
    )  # fmt: skip
    return typed.within(text, _LONGEST)


def _source(chosen: TensorOperation) -> InputSpec:
    left, right = st.columns(2)
    with left:
        shape = text.shape_of(_field(chosen, "shape", _("Shape of x"), chosen.shape))
    with right:
        prepared = st.selectbox(
            _("x is then"), list(PREPARED), key=key_of(chosen, "prepared"), bind="query-params",
            format_func=_, help=_("A transposed or cut tensor reads its memory in another order."),
        )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = key_of(chosen, "content")
        content = url_choice.choice(_("Content"), _CONTENT, key=key, query=key, old=key)
        dtype = st.segmented_control(
            _("Type"), ["float32", "int64"], default="float32", required=True,
            key=key_of(chosen, "dtype"), bind="query-params",
        )  # fmt: skip
    numbers = _numbers(chosen, shape) if content == _OWN else None
    whole: Dtype = "int64" if dtype == "int64" else "float32"
    if whole == "int64" and numbers is not None and any(n != int(n) for n in numbers):
        raise ValueError(_("int64 holds whole numbers only: write 2, not 2.5, or take float32."))
    return InputSpec(shape, numbers, whole, prepared if prepared in PREPARED else "as it is")


def _numbers(chosen: TensorOperation, shape: tuple[int, ...]) -> tuple[float, ...]:
    count = 1
    for size in shape:
        count *= size
    default = ", ".join(str(n) for n in range(count))
    written = st.text_input(
        _("Numbers"), default, key=key_of(chosen, "numbers"), bind="query-params",
        help=_("As many as the shape has room for, parted by commas or spaces."),
    )  # fmt: skip
    return text.numbers_of(typed.within(written, 10 * _LONGEST), count)


def key_of(chosen: TensorOperation, name: str) -> str:
    """Return the name of a control of an operation, which is also its name in a link."""
    return f"{chosen.name.replace(' ', '-').lower()}-{name}"


def own_mistakes(chosen: TensorOperation) -> None:
    """Offer the famous errors of one operation, one press each."""
    names = [name for name, one in MISTAKES.items() if one.operation == chosen.name]
    if names:
        st.caption(_("Famous errors, one press each"))
        _buttons(names, "own")


def gallery() -> None:
    """Offer all the famous errors, one press each."""
    label = _("Try the famous errors: all {n} of them").format(n=len(MISTAKES))
    with st.expander(label, icon=":material/error:"):
        st.caption(_("Each sets up a mistake that everybody makes once, and runs it."))
        _buttons(list(MISTAKES), "all")


def _buttons(names: list[str], where: str) -> None:
    with st.container(horizontal=True, gap="small"):
        for name in names:
            st.button(
                _(MISTAKES[name].title), key=f"mistake-{where}-{name}", on_click=_set_up,
                args=(MISTAKES[name],),
            )  # fmt: skip


def _set_up(mistake: Mistake) -> None:
    chosen = OPERATIONS[mistake.operation]
    settings = {one.name: one.default for one in chosen.parameters}
    settings |= {"shape": mistake.shape, "prepared": mistake.prepared, "content": "arange"}
    settings |= {"dtype": mistake.dtype, **mistake.texts}
    if chosen.kind == "makes":
        settings = {name: settings[name] for name in (one.name for one in chosen.parameters)}
    if chosen.second is not None:
        settings["second"] = mistake.second or chosen.second
    st.session_state["op"] = chosen.name
    for name, value in settings.items():
        st.session_state[key_of(chosen, name)] = value
