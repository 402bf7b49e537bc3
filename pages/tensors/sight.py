"""What an operation did: the tensors, their memory, the arithmetic, or the error and its cause."""

from __future__ import annotations

import streamlit as st

from pages.components.number_sheet import number_sheet
from pages.i18n import _, paragraph
from pages.ui import page_table, show
from pages.ui.typed import escape
from tfm_core.inspect.by_hand.arithmetic import product
from tfm_core.inspect.tensors import notes, products
from tfm_core.inspect.tensors.operations import TensorOperation
from tfm_core.inspect.tensors.sight import OperationResult, TensorView
from tfm_core.plots import tensor_ops as plots
from tfm_core.plots.sheet import Board, SheetLine
from tfm_core.plots.tensor_ops import Colours, Index

_PICK = "tensors-pick"


def code(seen: OperationResult) -> None:
    """Show the lines that ran, and where the models have them."""
    st.code(seen.code, language="python", wrap_lines=True)
    used(seen.operation)


def used(operation: TensorOperation) -> None:
    """Say where the app's models use an operation, with a link to that step."""
    st.markdown(_("**In the models:** {where}", where=_(operation.where)))
    if operation.step is not None:
        from tfm_core.inspect.walk.subject import book_entry

        st.page_link(
            page_table.path_of("walk"),
            label=_("See it in the walk, step {n}", n=book_entry(operation.step).number),
            icon=":material/footprint:",
            query_params={"step": operation.step, "source": "book"},
        )


def refused(seen: OperationResult) -> None:
    st.error(
        _("**PyTorch refuses.** {why}", why=escape(_(seen.explanation))), icon=":material/block:"
    )
    st.code(f"{seen.error_type}: {seen.error}", language=None, wrap_lines=True)
    colours = Colours(tuple(look.storage.size for look in seen.before), len(seen.before) > 1)
    boards = tuple(plots.tensor_board(one, one.name, colours) for one in seen.before)
    if boards:
        number_sheet([SheetLine(_("What it was given"), boards)], key="tensors-given")


def result(seen: OperationResult) -> None:
    """Show the tensors before and after, the memory behind them, and the order of reading."""
    after = seen.after
    assert after is not None
    kind = seen.operation.kind
    index, used_indices, told = _picked(seen, after)
    sizes = tuple(look.storage.size for look in seen.before)
    with_origin = len(sizes) > 1 or any(_is_own(look) for look in seen.before)
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
    boards = [plots.tensor_board(one, one.name, inputs) for one in seen.before]
    boards.append(
        plots.tensor_board(
            after, "y", output, name="y" if index is not None else "", sign="→" if boards else "",
            extra=_sharing(seen),
        )
    )  # fmt: skip
    title = _("Before and after") if seen.before else _("What was made")
    number_sheet(
        [SheetLine(title, tuple(boards), sentence, told)], key="tensors-sheet",
        on_pick=lambda _board, row, column: _remember(after, row, column),
    )  # fmt: skip
    _say(seen)
    if seen.operation.name == "einsum":
        _loops(seen)
    memory(seen, after, inputs, output)


def _is_own(look: TensorView) -> bool:
    """Say whether the numbers differ from their places, so that places must be written too."""
    return bool((look.storage != look.storage_origins).any())


def _sharing(seen: OperationResult) -> tuple[str, ...]:
    return tuple(
        _("shares memory with {name}", name=look.name)
        if shared
        else _("memory of its own, not {name}’s", name=look.name)
        for look, shared in zip(seen.before, seen.shares, strict=True)
    )


def _say(seen: OperationResult) -> None:
    said = notes.note(seen)
    if said:
        st.info(_(said), icon=":material/lightbulb:")
    if seen.operation.name == "softmax":
        sums = " · ".join(f"{value:.4f}" for value in notes.sums(seen))
        st.markdown(_("Sums along axis {dim}: **{sums}**", dim=seen.values["dim"], sums=sums))
    elif seen.operation.name in {"rand", "randn"}:
        st.markdown(_("Measured: {found}.", found=_(notes.statistics(seen))))


def _loops(seen: OperationResult) -> None:
    equation = seen.values["equation"]
    _parts, _out, summed = products.letters(equation)
    inputs = [look.values for look in seen.before]
    assert seen.after is not None
    difference = abs(products.by_loops(equation, inputs) - seen.after.values).max(initial=0)
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


def memory(seen: OperationResult, after: TensorView, inputs: Colours, output: Colours) -> None:
    """Show the flat memory of each tensor and the order in which it is read."""
    boards: list[Board] = [
        plots.memory_board(one, _("Memory of {name}", name=one.name), inputs) for one in seen.before
    ]
    shared = any(seen.shares)
    name = _("The same memory, as y reads it") if shared else _("Memory of y")
    boards.append(plots.memory_board(after, name, output))
    words = paragraph("tensors/memory")
    number_sheet([SheetLine(_("In memory"), tuple(boards), words)], key="tensors-memory")
    looks = [*seen.before[:1], after] if after.values.size else list(seen.before[:1])
    if looks and seen.operation.kind == "moves":
        show.figure(plots.reading(looks), paragraph("tensors/strides"), key="tensors-reading")


def _picked(
    seen: OperationResult, after: TensorView
) -> tuple[Index | None, frozenset[int], tuple[str, ...]]:
    """Return the element of a product that is looked at, what it is made of, and its arithmetic."""
    if seen.operation.kind != "computes" or after.values.size == 0:
        return None, frozenset(), ()
    kept: Index = st.session_state.get(_PICK, ())
    index = kept if len(kept) == len(after.shape) else (0,) * len(after.shape)
    index = tuple(min(i, size - 1) for i, size in zip(index, after.shape, strict=True))
    shapes = [look.shape for look in seen.before]
    at = "".join(f"[{i}]" for i in index)
    if seen.operation.name not in {"matmul", "mm", "einsum"}:
        cells = _cells_of(seen, shapes, index)
        used = frozenset(int(look.origins[cell]) for look, cell in cells)
        return index, used, (f"y{at} = " + _said(seen, cells, float(after.values[index])),)
    terms = products.terms(seen.operation.name, seen.values, shapes, index)
    used_indices = frozenset(
        int(look.origins[at])
        for term in terms
        for look, at in zip(seen.before, term, strict=False)
    )  # fmt: skip
    factors = [
        [float(look.values[at]) for look, at in zip(seen.before, term, strict=False)]
        for term in terms
    ]
    pairs = [(row[0], row[1] if len(row) > 1 else 1.0) for row in factors]
    left, right = [a for a, _b in pairs], [b for _a, b in pairs]
    return index, used_indices, (f"y{at} = " + _written(left, right, float(after.values[index])),)


def _cells_of(
    seen: OperationResult, shapes: list[Index], index: Index
) -> list[tuple[TensorView, Index]]:
    if seen.operation.name == "broadcast":
        return [
            (look, products.stretched(shape, index))
            for look, shape in zip(seen.before, shapes, strict=True)
        ]
    look = seen.before[0]
    return [(look, cell) for cell in products.along(seen.values, shapes[0], index)]


def _said(seen: OperationResult, cells: list[tuple[TensorView, Index]], made: float) -> str:
    numbers = [f"{float(look.values[cell]):g}" for look, cell in cells]
    if seen.operation.name == "broadcast":
        sign = f" {seen.values['sign']} "
        return f"{sign.join(numbers)} = {made:g}"
    if seen.operation.name == "mean":
        return f"({' + '.join(numbers)}) / {len(numbers)} = {made:.6g}"
    return _(
        "{place}: the largest of {numbers} is at {place}",
        place=int(made),
        numbers=", ".join(numbers),
    )


def _written(left: list[float], right: list[float], total: float) -> str:
    return product(left, right, total, is_whole=True)


def _remember(after: TensorView, row: int, column: int) -> None:
    st.session_state[_PICK] = plots.index_at(after, row, column)


def numpy() -> None:
    st.header(_("NumPy and PyTorch"), anchor=False)
    rows = [(f"`{fact.code}`", f"`{fact.found}`", _(fact.meaning)) for fact in notes.numpy_facts()]
    show.facts(rows, [_("code"), _("gives here"), _("so")])
