"""The figures of tensors: what view, transpose, einsum and their kin do to a small one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.app import show, typed
from pages.app.address import view
from pages.app.article import Made, keep
from pages.app.typed import escape
from pages.components.pickers import number_sheet
from pages.i18n import N_, _, paragraph
from tfm_core.inspect.tensors import operations, shapes, sight
from tfm_core.inspect.tensors.operations import OPERATIONS, TensorOperation, Values
from tfm_core.inspect.tensors.shapes import MISTAKES, Index
from tfm_core.inspect.tensors.sight import PREPARED, Dtype, InputSpec, OperationResult, TensorView
from tfm_core.plots.chart import chart
from tfm_core.plots.model import tensor_ops as plots
from tfm_core.plots.model.tensor_ops import Colours
from tfm_core.plots.palette import BLUE, GREY
from tfm_core.plots.sheet import Board, SheetLine
from tfm_core.sentences import Paragraph

SCOPE = "tensors"
MAX_LETTERS, MAX_NUMBERS = 40, 400  # characters of a shape or a parameter, and of own numbers
OWN = "own"
_CONTENT = {"arange": N_("0, 1, 2 …"), OWN: N_("Own numbers")}
_SHAPE = N_("One to four whole numbers, at most 64 elements: 2, 3.")
_ORDER = N_("A transposed or sliced tensor reads its memory in another order.")
_TYPES = ("float32", "int64")
_CODE = {"format_func": str}  # these names are the same in every language
_PICK = "tensors-pick"


@dataclass(frozen=True)
class Tensors:
    """The operation that is shown."""

    op: str = view.choice(
        N_("Operation"), {name: name for name in OPERATIONS}, "view", is_list=True, look=_CODE
    )


def fields_of(chosen: TensorOperation, numbers: str = "") -> dict[str, Any]:
    """Return the fields of an operation's parameters and inputs. numbers: default of x."""
    fields: dict[str, Any] = {}
    for part in chosen.parameters:
        if part.choices:
            names = {name: name for name in part.choices}
            fields[part.name] = view.choice(part.label, names, is_list=True, look=_CODE)
        else:
            fields[part.name] = view.text(part.label, part.default, MAX_LETTERS, help=part.help)
    if chosen.second is not None:
        fields["second"] = view.text(N_("Shape of b"), chosen.second, MAX_LETTERS, help=_SHAPE)
    if chosen.kind == "makes":
        return fields
    prepared, types = ({name: name for name in names} for names in (PREPARED, _TYPES))
    start, hint = OWN if chosen.numbers else "arange", N_("As many as fit the shape.")
    return fields | {
        "shape": view.text(N_("Shape of x"), chosen.shape, MAX_LETTERS, help=_SHAPE),
        "prepared": view.choice(N_("x is then"), prepared, is_list=True, help=_ORDER),
        "content": view.choice(N_("Content"), _CONTENT, start),
        "numbers": view.text(N_("Numbers"), numbers or chosen.numbers, MAX_NUMBERS, help=hint),
        "dtype": view.choice(N_("Type"), types, look=_CODE),
    }


def operation(made: Made) -> None:
    """Show one operation on a tensor of the reader's; a link may hold it."""
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    with left:
        chosen = OPERATIONS[view.ask(Tensors, SCOPE).op]
    with right:
        st.markdown(_(chosen.help))
    given, seen_code = st.columns(2, gap="medium")
    try:
        with given:
            source, values, second = _inputs(chosen)
        result = sight.run_operation(chosen.name, source, values, second)
    except ValueError as error:
        with given:
            show.problem(error)
    else:
        with seen_code:
            st.code(result.code, language="python", wrap_lines=True)
        if result.after is None:
            _refused(result)
        else:
            _result(result, result.after)
            of = f"{result.after.shape} {result.after.strides}"
            keep(made, of, strides=sight.about_strides(result.after))
            keep(made, of, view=sight.about_view(result.after))
    _used(chosen)
    own = [name for name, (of, _fields) in MISTAKES.items() if of == chosen.name]
    if own:
        st.caption(_("Common errors"))
        _mistakes(own, "own")


def errors(_made: Made) -> None:
    """Offer every famous error; a press sets up the operation above."""
    _mistakes(list(MISTAKES), "all")


def _inputs(chosen: TensorOperation) -> tuple[InputSpec, Values, tuple[int, ...] | None]:
    """Ask for the first input, the parameters and the shape of b. Raises ValueError."""
    source = InputSpec((1,))
    second = None
    if chosen.kind != "makes":
        source = _source(chosen)
    if chosen.second is not None:
        second = operations.shape_of(_typed(chosen, "second"), "b")
    parameters = {}
    for start in range(0, len(chosen.parameters), 2):
        pair = chosen.parameters[start : start + 2]
        for column, part in zip(st.columns(len(pair)), pair, strict=True):
            with column:
                parameters[part.name] = _typed(chosen, part.name)
    return source, operations.parse_arguments(chosen, parameters), second


def _typed(chosen: TensorOperation, name: str, numbers: str = "") -> str:
    """Ask for a field of an operation. Raises ValueError where a text is too long."""
    value = str(view.one(fields_of(chosen, numbers)[name], key_of(chosen, name), ""))
    return typed.check_length(value, MAX_NUMBERS if name == "numbers" else MAX_LETTERS)


def _source(chosen: TensorOperation) -> InputSpec:
    facts, choices = show.fact_line("tensors")
    problems = st.container()
    shape = operations.shape_of(_typed(chosen, "shape"))
    with choices, view.warnings_in(problems):
        prepared, content, dtype = (
            _typed(chosen, name) for name in ("prepared", "content", "dtype")
        )
    facts.caption(show.joined(_("x: {how}", how=_(prepared)), _(_CONTENT[content]), dtype))
    numbers = None
    if content == OWN:
        count = math.prod(shape)
        is_default = shape == operations.shape_of(chosen.shape) and chosen.numbers
        counted = "" if is_default else ", ".join(map(str, range(count)))
        numbers = operations.numbers_of(_typed(chosen, "numbers", counted), count)
    whole: Dtype = "int64" if dtype == "int64" else "float32"
    if whole == "int64" and numbers is not None and any(n != int(n) for n in numbers):
        raise ValueError(_("int64 holds whole numbers only: take float32 for 2.5."))
    return InputSpec(shape, numbers, whole, prepared)


def _mistakes(names: list[str], where: str) -> None:
    with st.container(horizontal=True, gap="small"):
        for name in names:
            title = Paragraph(f"tensors/errors.{name}")
            st.button(_(title), key=f"mistake-{where}-{name}", on_click=_set_up, args=(name,))


def _set_up(name: str) -> None:
    """Fill the fields with what makes a famous error."""
    operation, given = MISTAKES[name]
    chosen = OPERATIONS[operation]
    st.session_state[f"{SCOPE}-op"] = operation
    fields = fields_of(chosen)
    start = {"content": "arange", "prepared": next(iter(PREPARED)), "dtype": _TYPES[0]}
    for field in fields:
        first = view.placed(fields[field], field, "").parameter.first
        value = given.get(field, start.get(field, first))
        st.session_state[key_of(chosen, field)] = value


def key_of(chosen: TensorOperation, name: str) -> str:
    """Return the name of a control of an operation, which is also its name in a link."""
    return f"{chosen.name.replace(' ', '-').lower()}-{name}"


def _used(operation: TensorOperation) -> None:
    """Show where the app's models use an operation, with a link to that step."""
    st.markdown(_("**In the models:** {where}", where=_(operation.where)))
    if operation.step is not None:
        from tfm_core.trace.trace import book_index

        show.link(
            "walk",
            _("See it in the walk, step {n}", n=book_index()[operation.step][0]),
            {"part": operation.step, "walk-source": "book"},
        )


def _refused(outcome: OperationResult) -> None:
    why = escape(_(outcome.explanation))
    message = _("**PyTorch refuses.** {why}", why=why)
    if outcome.operation.name == "assert":
        message = _("**The program stops.** {why}", why=why)
    st.error(message, icon=":material/block:")
    st.code(f"{outcome.error_type}: {outcome.error}", language=None, wrap_lines=True)
    colours, _of_result = plots.colours_of(outcome)
    boards = tuple(plots.tensor_board(one, one.name, colours) for one in outcome.before)
    if boards:
        number_sheet([SheetLine(_("Inputs"), boards)], key="tensors-given")


def _result(outcome: OperationResult, after: TensorView) -> None:
    """Show the tensors before and after, the memory behind them, and the order of reading."""
    kind = outcome.operation.kind
    index = _picked(outcome, after)
    used, written = (frozenset[int](), "") if index is None else sight.arithmetic(outcome, index)
    inputs, output = plots.colours_of(outcome, index, used)
    sentence = {
        "moves": _("Point at an element to see where it went."),
        "fills": _("Hatched elements are new."),
        "places": _("Every element keeps its place and gets a new number."),
        "computes": _("Click a number of y to frame what it is computed from."),
        "makes": _("Created from scratch, so there is no input."),
    }[kind]
    boards = [plots.tensor_board(before, before.name, inputs) for before in outcome.before]
    sharing = [
        _("shares memory with {name}", name=tensor.name)
        if shared
        else _("separate memory, not shared with {name}", name=tensor.name)
        for tensor, shared in zip(outcome.before, outcome.shares, strict=True)
    ]
    boards.append(
        plots.tensor_board(
            after,
            "y",
            output,
            name="y" if index is not None else "",
            sign="→" if boards else "",
            extra=sharing,
        )
    )
    title = _("Before and after") if outcome.before else _("Result")
    arithmetic = (written,) if written else ()
    number_sheet(
        [SheetLine(title, tuple(boards), sentence, arithmetic)],
        key="tensors-sheet",
        on_pick=lambda _board, row, column: st.session_state.update(
            {_PICK: plots.index_at(after, row, column)}
        ),
    )
    note = sight.note(outcome)
    if note:
        st.info(_(note), icon=":material/lightbulb:")
    if outcome.operation.name == "softmax":
        sums = " · ".join(f"{value:.4f}" for value in sight.sums(outcome))
        st.markdown(_("Sums along axis {dim}: **{sums}**", dim=outcome.values["dim"], sums=sums))
    elif outcome.operation.name in {"rand", "randn", "randint"}:
        st.markdown(_("Measured: {found}.", found=_(sight.statistics(outcome))))
    if outcome.operation.name == "einsum":
        _loops(outcome, after)
    _memory(outcome, after, inputs, output)


def _loops(outcome: OperationResult, after: TensorView) -> None:
    equation = outcome.values["equation"]
    summed = shapes.summed_letters(equation)
    inputs = [tensor.values for tensor in outcome.before]
    difference = abs(shapes.by_loops(equation, inputs) - after.values).max(initial=0)
    names = ", ".join(f"**{letter}**" for letter in summed)
    st.markdown(
        _("Summed over: {letters}, absent from the output.", letters=names)
        if summed
        else _("Nothing is summed: every letter is in the output.")
    )
    st.markdown(
        _("Plain loops give the same: the largest difference is **{d:.2g}**.", d=float(difference))
    )
    st.code(shapes.loops_code(equation, inputs), language="python")


def _memory(outcome: OperationResult, after: TensorView, inputs: Colours, output: Colours) -> None:
    """Show the flat memory of each tensor and the order in which it is read."""
    boards: list[Board] = [
        plots.memory_board(tensor, _("Memory of {name}", name=tensor.name), inputs)
        for tensor in outcome.before
    ]
    shared = any(outcome.shares)
    name = _("The same memory, as y reads it") if shared else _("Memory of y")
    boards.append(plots.memory_board(after, name, output))
    words = paragraph("tensors/memory")
    number_sheet([SheetLine(_("In memory"), tuple(boards), words)], key="tensors-memory")
    looks = [*outcome.before[:1], after] if after.values.size else list(outcome.before[:1])
    if looks and outcome.operation.kind == "moves":
        dotted = {"colour": GREY, "dash": "dot", "symbol": "circle-open", "size": 9}
        order = chart(
            sight.reading(looks),
            x="element",
            y="place",
            colour="of",
            looks={"x": dotted, "y": {"colour": BLUE, "symbol": "square", "size": 6}},
            height=300,
        )
        show.figure(order, paragraph("tensors/strides"), key="tensors-reading")


def _picked(outcome: OperationResult, after: TensorView) -> Index | None:
    """Return the chosen element of the result, where its arithmetic can be written out."""
    if outcome.operation.kind != "computes" or after.values.size == 0:
        return None
    stored: Index = st.session_state.get(_PICK, ())
    index = stored if len(stored) == len(after.shape) else (0,) * len(after.shape)
    return tuple(min(i, size - 1) for i, size in zip(index, after.shape, strict=True))


def numpy(_made: Made) -> None:
    """Show what an array and a tensor share, computed here."""
    facts = sight.numpy_facts()
    rows = [(f"`{code}`", f"`{found}`", _(meaning)) for code, found, meaning in facts]
    show.facts(rows, [_("code"), _("here"), _("meaning")])
