"""The result of an operation: tensors, memory and arithmetic, or the error."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.components.pickers import number_sheet
from pages.i18n import _, paragraph
from pages.ui import show
from pages.ui.model import question
from pages.ui.navigation import page_table
from pages.ui.typed import escape
from tfm_core.inspect.by_hand.arithmetic import product
from tfm_core.inspect.tensors import notes, products, questions
from tfm_core.inspect.tensors.operations import TensorOperation
from tfm_core.inspect.tensors.sight import OperationResult, TensorView
from tfm_core.plots.model import tensor_ops as plots
from tfm_core.plots.model.tensor_ops import Colours, Index
from tfm_core.plots.sheet import Board, SheetLine

_PICK = "tensors-pick"


def used(operation: TensorOperation) -> None:
    """Say where the app's models use an operation, with a link to that step."""
    st.markdown(_("**In the models:** {where}", where=_(operation.where)))
    if operation.step is not None:
        from tfm_core.inspect.walk.subject import book_entry

        st.page_link(
            page_table.path_of("walk"),
            label=_("See it in the walk, step {n}", n=book_entry(operation.step).number),
            icon=":material/footprint:",
            query_params={"step": operation.step, "walk-source": "book"},
        )


def refused(outcome: OperationResult) -> None:
    why = escape(_(outcome.explanation))
    said = _("**PyTorch refuses.** {why}", why=why)
    if outcome.operation.name == "assert":
        said = _("**The program stops.** {why}", why=why)
    st.error(said, icon=":material/block:")
    st.code(f"{outcome.error_type}: {outcome.error}", language=None, wrap_lines=True)
    colours = Colours(
        tuple(tensor.storage.size for tensor in outcome.before), len(outcome.before) > 1
    )
    boards = tuple(
        plots.tensor_board(board_tensor, board_tensor.name, colours)
        for board_tensor in outcome.before
    )
    if boards:
        number_sheet([SheetLine(_("Inputs"), boards)], key="tensors-given")


def result(outcome: OperationResult) -> None:
    """Show the tensors before and after, the memory behind them, and the order of reading."""
    after = outcome.after
    assert after is not None
    kind = outcome.operation.kind
    index, used_indices, arithmetic = _picked(outcome, after)
    sizes = tuple(tensor.storage.size for tensor in outcome.before)
    with_origin = len(sizes) > 1 or any(
        # the numbers differ from their places, so places must be written too
        (tensor.storage != tensor.storage_origins).any()
        for tensor in outcome.before
    )
    inputs = Colours(sizes, with_origin, used=used_indices)
    is_new = kind in {"computes", "makes", "places"}
    output = Colours(sizes, with_origin and not is_new, is_new, index, used_indices)
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
    number_sheet(
        [SheetLine(title, tuple(boards), sentence, arithmetic)],
        key="tensors-sheet",
        on_pick=lambda _board, row, column: _remember(after, row, column),
    )
    note = notes.note(outcome)
    if note:
        st.info(_(note), icon=":material/lightbulb:")
    if outcome.operation.name == "softmax":
        sums = " · ".join(f"{value:.4f}" for value in notes.sums(outcome))
        st.markdown(_("Sums along axis {dim}: **{sums}**", dim=outcome.values["dim"], sums=sums))
    elif outcome.operation.name in {"rand", "randn", "randint"}:
        st.markdown(_("Measured: {found}.", found=_(notes.statistics(outcome))))
    asked = {"strides": questions.about_strides(after), "view": questions.about_view(after)}
    question.check(asked, of=f"{after.shape} {after.strides}")
    if outcome.operation.name == "einsum":
        _loops(outcome)
    memory(outcome, after, inputs, output)


def _loops(outcome: OperationResult) -> None:
    equation = outcome.values["equation"]
    _parts, _out, summed = products.letters(equation)
    inputs = [tensor.values for tensor in outcome.before]
    assert outcome.after is not None
    difference = abs(products.by_loops(equation, inputs) - outcome.after.values).max(initial=0)
    names = ", ".join(f"**{letter}**" for letter in summed)
    st.markdown(
        _("Summed over: {letters}, absent from the output.", letters=names)
        if summed
        else _("Nothing is summed: every letter is in the output.")
    )
    st.markdown(
        _("Plain loops give the same: the largest difference is **{d:.2g}**.", d=float(difference))
    )
    st.code(products.loops_code(equation, inputs), language="python")


def memory(outcome: OperationResult, after: TensorView, inputs: Colours, output: Colours) -> None:
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
        show.figure(plots.reading(looks), paragraph("tensors/strides"), key="tensors-reading")


def _picked(
    outcome: OperationResult, after: TensorView
) -> tuple[Index | None, frozenset[int], tuple[str, ...]]:
    """Return the chosen element of the result, its inputs, and its arithmetic."""
    if outcome.operation.kind != "computes" or after.values.size == 0:
        return None, frozenset(), ()
    stored: Index = st.session_state.get(_PICK, ())
    index = stored if len(stored) == len(after.shape) else (0,) * len(after.shape)
    index = tuple(min(i, size - 1) for i, size in zip(index, after.shape, strict=True))
    shapes = [tensor.shape for tensor in outcome.before]
    at = "".join(f"[{i}]" for i in index)
    if outcome.operation.name not in {"matmul", "mm", "einsum"}:
        cells = _cells_of(outcome, shapes, index)
        used = frozenset(int(tensor.origins[cell]) for tensor, cell in cells)
        made = float(after.values[index])
        return index, used, (f"y{at} = " + _reduction(outcome, cells, made, index),)
    terms = products.terms(outcome.operation.name, outcome.values, shapes, index)
    used_indices = frozenset(
        int(tensor.origins[at])
        for term in terms
        for tensor, at in zip(outcome.before, term, strict=False)
    )
    factors = [
        [float(tensor.values[at]) for tensor, at in zip(outcome.before, term, strict=False)]
        for term in terms
    ]
    pairs = [(row[0], row[1] if len(row) > 1 else 1.0) for row in factors]
    left, right = [a for a, _b in pairs], [b for _a, b in pairs]
    return (
        index,
        used_indices,
        (f"y{at} = " + product(left, right, float(after.values[index]), is_whole=True),),
    )


def _cells_of(
    outcome: OperationResult, shapes: list[Index], index: Index
) -> list[tuple[TensorView, Index]]:
    if outcome.operation.name == "broadcast":
        return [
            (tensor, products.stretched(shape, index))
            for tensor, shape in zip(outcome.before, shapes, strict=True)
        ]
    tensor, name = outcome.before[0], outcome.operation.name
    if name == "ToTensor":
        channel, *place = index
        return [(tensor, (*place, channel)[: len(tensor.shape)])]
    if name == "numel":
        return [(tensor, cell) for cell in np.ndindex(*tensor.shape)]
    values = {"dim": -1} if name == "Sequential" else outcome.values
    return [(tensor, cell) for cell in products.along(values, shapes[0], index)]


def _reduction(
    outcome: OperationResult, cells: list[tuple[TensorView, Index]], made: float, index: Index
) -> str:
    numbers = [f"{float(tensor.values[cell]):g}" for tensor, cell in cells]
    if outcome.operation.name == "broadcast":
        sign = f" {outcome.values['sign']} "
        return f"{sign.join(numbers)} = {made:g}"
    if outcome.operation.name == "mean":
        return f"({' + '.join(numbers)}) / {len(numbers)} = {made:.6g}"
    if outcome.operation.name == "ToTensor":
        return f"{int(float(numbers[0])) % 256} / 255 = {made:.6g}"
    if outcome.operation.name == "numel":
        return f"{' × '.join(map(str, outcome.before[0].shape))} = {made:g}"
    if outcome.operation.name == "Sequential":
        return f"(W₂ relu(W₁ [{', '.join(numbers)}] + b₁) + b₂)[{index[-1]}] = {made:.6g}"
    return _(
        "{place}: the largest of {numbers} is at {place}",
        place=int(made),
        numbers=", ".join(numbers),
    )


def _remember(after: TensorView, row: int, column: int) -> None:
    st.session_state[_PICK] = plots.index_at(after, row, column)


def numpy() -> None:
    st.header(_("NumPy and PyTorch"), anchor=False)
    rows = [(f"`{fact.code}`", f"`{fact.found}`", _(fact.meaning)) for fact in notes.numpy_facts()]
    show.facts(rows, [_("code"), _("gives here"), _("so")])
