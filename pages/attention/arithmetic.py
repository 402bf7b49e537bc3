"""The arithmetic of one cell: products, scale, mask, softmax and contribution."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.attention import selection as chosen
from pages.attention.selection_link import Selection
from pages.i18n import _
from pages.ui import show
from pages.ui.typed import escape
from tfm_core import byte_cache
from tfm_core.config import built
from tfm_core.inspect.attention import trained
from tfm_core.inspect.attention.cell import (
    AttentionCell,
    Trace,
    dimensions_table,
    row_table,
    seen,
    traced,
)
from tfm_core.inspect.attention.cell import cell as cell_of
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.heads.attention import outline_cells
from tfm_core.plots.palette import VERMILION
from tfm_core.probe.labels import MapAxes, axes, modules_by_kind, rows
from tfm_core.runs.run import Run
from tfm_core.variants.positions import POSITIONS

_TALL = 320  # pixels of a table; longer ones scroll


def cell_at(example: Example, selection: Selection, module: str, names: MapAxes) -> tuple[int, int]:
    """Return the chosen cell, else the strongest of the head."""
    if selection.cell is not None:
        query, key = selection.cell
        return min(query, len(names.query) - 1), min(key, len(names.key) - 1)
    weights = example.maps([module])[0, selection.head]
    row, column = np.unravel_index(int(weights.argmax()), weights.shape)
    return int(row), int(column)


def outline(figure: go.Figure, cell: tuple[int, int], names: MapAxes, view: MapView) -> None:
    """Frame a cell of the whole map in the figure of a view of it."""
    cells = np.zeros(names.shape, np.bool_)
    cells[cell] = True
    outline_cells(figure, view.cut(cells), VERMILION, 3)


def arithmetic(run: Run, example: Example, selection: Selection) -> None:
    """Show how the weight of the chosen cell is computed, with the model's own numbers."""
    module = modules_by_kind(run.experiment)[selection.kind][selection.layer]
    names = axes(run.experiment, example.item, module)
    cell = cell_at(example, selection, module, names)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _pickers(run, example, selection, module, cell, names)
    try:
        trace = _trace(run, example, module, selection.example)
        traced = cell_of(run.experiment, trace, selection.head, *cell)
    except ValueError as error:
        show.problem(error)
        return
    if trace.step != example.step:
        st.info(
            _(
                "The arithmetic uses the last checkpoint, step {last}; the map shows step {step}.",
                last=f"{trace.step:,}",
                step=f"{example.step:,}",
            ),
            icon=":material/history:",
        )
    row = _(rows(run.experiment, example.item, module, selection.row_names).words[cell[0]])
    product, score, softmax, output = st.columns([4, 3, 4, 4], gap="medium")
    with product:
        _product(traced)
    is_look = not run.experiment.task.has_model
    with score:
        _score(traced, "" if is_look else built(run.experiment.model).position)
    with softmax:
        _softmax(traced, is_look=is_look)
    with output:
        _output(traced, row)


def _pickers(
    run: Run,
    example: Example,
    selection: Selection,
    module: str,
    cell: tuple[int, int],
    names: MapAxes,
) -> None:
    query_key, key_key = "attention-cell-query", "attention-cell-key"
    st.session_state[query_key], st.session_state[key_key] = cell
    words = rows(run.experiment, example.item, module, selection.row_names).words

    def picked() -> None:
        chosen.choose(run.id, cell=(st.session_state[query_key], st.session_state[key_key]))

    st.selectbox(
        _("Query (attends from)"),
        range(len(names.query)),
        format_func=lambda i: _(words[i]),
        key=query_key,
        on_change=picked,
        label_visibility="collapsed",
        width=280,
    )
    st.markdown(_("reads"), width="content")
    st.selectbox(
        _("Key (is attended to)"),
        range(len(names.key)),
        format_func=lambda i: f"{i + 1}: {names.key[i]}",
        key=key_key,
        on_change=picked,
        label_visibility="collapsed",
        width=200,
    )


def _dimensions(cell: AttentionCell, columns: dict[str, tuple[str, int]]) -> None:
    """Show columns of the table of dimensions. columns: name -> title and width in pixels."""
    dims = dimensions_table(cell)[["dimension", *columns]].dropna()
    number = st.column_config.NumberColumn
    st.dataframe(
        dims,
        hide_index=True,
        height=min(_TALL, 38 + 35 * len(dims)),
        column_config={
            "dimension": number(_("Dim."), width=40),
            **{
                name: number(title, format="%.3f", width=width)
                for name, (title, width) in columns.items()
            },
        },
    )


def _product(cell: AttentionCell) -> None:
    if cell.is_tanh:
        st.markdown(_("**1. Sum of v · tanh(query + key)**, each projected by its own matrix"))
    else:
        st.markdown(_("**1. Dot product of query and key**"))
    _dimensions(
        cell, {"query": (_("Query"), 60), "key": (_("Key"), 60), "product": (_("Product"), 60)}
    )
    formula = r"v \cdot \tanh(q + k)" if cell.is_tanh else r"q \cdot k"
    show.formula(rf"{formula} = {cell.dot:.4f}")


def _score(cell: AttentionCell, position: str) -> None:
    """Show how a product becomes a score. position: of the model, "" for a look."""
    under_root, width = round(cell.scale**2), len(cell.query)
    kind = _(POSITIONS[position].label) if position else _("bias or cap")
    bias = rf" {cell.bias:+.4f}\ (\text{{{kind}}})" if cell.bias else ""
    if cell.scale == 1:
        st.markdown(_("**2. Mask**: these scores are not scaled"))
        if bias:
            show.formula(f"{cell.dot:.4f}{bias} = {cell.score:.4f}")
    elif not position and under_root != width:
        st.markdown(_("**2. Divide** by {scale}, then mask", scale=f"{cell.scale:.4g}"))
        show.formula(rf"\frac{{{cell.dot:.4f}}}{{{cell.scale:.4f}}}")
        show.formula(f"{bias} = {cell.score:.4f}")
    else:
        st.markdown(
            _("**2. Scale** by √d_head, then mask")
            if under_root == width
            else _(
                "**2. Scale** by √d_model = √{d_model} (mistake: √{width} is right), then mask",
                d_model=under_root,
                width=width,
            )
        )
        show.formula(
            rf"\frac{{{cell.dot:.4f}}}{{\sqrt{{{under_root}}}}}"
            rf"= \frac{{{cell.dot:.4f}}}{{{cell.scale:.4f}}}"
        )
        show.formula(f"{bias} = {cell.score:.4f}")
    st.caption(
        _("The mask allows this pair.")
        if cell.may_attend
        else _("The mask forbids this key: weight 0.")
    )


def _softmax(cell: AttentionCell, *, is_look: bool) -> None:
    st.markdown(_("**3. Softmax** over the row"))
    number = st.column_config.NumberColumn
    rows = row_table(cell)
    if rows["may_attend"].all():  # a constant column would take the room of the weights
        rows = rows.drop(columns="may_attend")
    here = np.arange(len(rows)) == cell.key_index  # in the cell: another column would hide weights
    rows["token"] = np.where(here, rows["token"] + " ◀", rows["token"])
    st.dataframe(
        rows.drop(columns="key"),
        hide_index=True,
        height=min(_TALL, 38 + 35 * len(rows)),
        column_config={
            "token": st.column_config.TextColumn(_("Key"), width=80),
            "score": number(_("Score"), format="%.2f", width=52),
            "may_attend": st.column_config.CheckboxColumn(_("May"), width=36),
            "exponential": number("e^(s − max)", format="%.3f", width=60),
            "weight": st.column_config.ProgressColumn(
                _("Weight"), min_value=0, max_value=1, format="%.4f", width=90
            ),
        },
    )
    mine = float(cell.exponentials[cell.key_index])
    show.formula(rf"\frac{{{mine:.4f}}}{{{cell.total:.4f}}} = {cell.weight:.4f}")
    if cell.sink:
        share, value = f"{cell.sink / cell.total:.1%}", f"{cell.sink:.4f}"
        words = _(
            "The sink adds {value} to the denominator and takes {share} of this row.",
            value=value,
            share=share,
        )
        if is_look:
            words = _(
                "What the map does not show, a sink or keys outside the crop, adds {value} to the "
                "denominator and takes {share} of this row.",
                value=value,
                share=share,
            )
        st.caption(words)


def _output(cell: AttentionCell, row: str) -> None:
    st.markdown(_("**4. Contribution**: weight × value"))
    _dimensions(
        cell,
        {
            "value": (_("Value"), 60),
            "contribution": (_("Weight × value"), 80),
            "output": (_("Output"), 60),
        },
    )
    st.markdown(
        _(
            "**{share}** of this head’s output in row “{row}” comes from “{key}”.",
            key=escape(cell.key_token),
            row=escape(row),
            share=f"{cell.share * 100:.1f}%",
        ),
        help=_(
            "Projection onto the output; by length alone, {norm}.",
            norm=f"{cell.norm_share * 100:.1f}%",
        ),
    )


def _trace(run: Run, example: Example, module: str, index: int | None) -> Trace:
    if not run.experiment.task.has_model:
        return seen(run, index or 0, module)
    picture = None if example.picture is None else example.picture.tobytes()
    shape = () if example.picture is None else example.picture.shape
    item = json.dumps({name: list(example.item.get(name, ())) for name in ("src", "tgt")})
    return _traced(run.folder, trained.checkpoint_mark(run), item, module, picture, shape)


@byte_cache.cached
def _traced(
    folder: Path, mark: int, item: str, module: str, picture: bytes | None, shape: tuple[int, ...]
) -> Trace:
    pixels = None if picture is None else np.frombuffer(picture, np.uint8).reshape(shape)
    return traced(Run(folder), json.loads(item), module, pixels)
