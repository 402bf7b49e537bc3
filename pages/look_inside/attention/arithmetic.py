"""How one weight of a map is computed, with the model's own numbers."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.app import show
from pages.app.typed import escape
from pages.i18n import _
from pages.look_inside.attention.maps import Shown, cell_of, choose
from tfm_core.choices.config import built
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.inspect.attention.maps import (
    AttentionCell,
    attention_cell,
    recorded_trace,
    trace_attention,
)
from tfm_core.probe.labels import rows

_TALL = 320  # pixels of a table; longer ones scroll


def arithmetic(shown: Shown) -> None:
    """Show how the weight of the chosen cell is computed, with the model's own numbers."""
    place, names = cell_of(shown), shown.names
    row_names = rows(shown.experiment, shown.example.item, shown.module, shown.rows_by).words
    query, key = "attention-cell-query", "attention-cell-key"
    st.session_state[query], st.session_state[key] = place

    def picked() -> None:
        choose(cell=(st.session_state[query], st.session_state[key]))

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.selectbox(
            _("Query (attends from)"),
            range(len(names.query)),
            format_func=lambda i: _(row_names[i]),
            key=query,
            on_change=picked,
            label_visibility="collapsed",
            width=280,
        )
        st.markdown(_("reads"), width="content")
        st.selectbox(
            _("Key (is attended to)"),
            range(len(names.key)),
            format_func=lambda i: f"{i + 1}: {names.key[i]}",
            key=key,
            on_change=picked,
            label_visibility="collapsed",
            width=200,
        )
    try:
        example, module = shown.example, shown.module
        if shown.experiment.task.has_model:
            trace = trace_attention(shown.run, example.item, module, example.picture)
        else:
            trace = recorded_trace(shown.run, shown.number or 0, module)
        computed = attention_cell(shown.experiment, trace, shown.chosen.head, *place)
    except ValueError as error:
        show.problem(error)
        return
    if trace.step != shown.example.step:
        st.info(
            _(
                "The arithmetic uses the last checkpoint, step {last}; the map shows step {step}.",
                last=f"{trace.step:,}",
                step=f"{shown.example.step:,}",
            ),
            icon=":material/history:",
        )
    is_look = not shown.experiment.task.has_model
    product, score, softmax, output = st.columns([4, 3, 4, 4], gap="medium")
    with product:
        _product(computed)
    with score:
        _score(computed, "" if is_look else built(shown.experiment.model).position)
    with softmax:
        _softmax(computed, is_look=is_look)
    with output:
        _output(computed, _(row_names[place[0]]))


def _dimensions(cell: AttentionCell, columns: dict[str, tuple[str, int]]) -> None:
    """Show columns of the table of dimensions. columns: name -> title and width in pixels."""
    dims = cell.dimensions[["dimension", *columns]].dropna()
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
    under_root, width = round(cell.scale**2), cell.dimensions["query"].count()
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
    rows = cell.row
    if rows["may_attend"].all():  # a constant column would take the room of the weights
        rows = rows.drop(columns="may_attend")
    # marked in its cell, because another column would hide weights
    is_chosen = np.arange(len(rows)) == cell.key_index
    st.dataframe(
        rows.assign(token=np.where(is_chosen, rows["token"] + " ◀", rows["token"])),
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
    mine = float(cell.row["exponential"].iloc[cell.key_index])
    show.formula(rf"\frac{{{mine:.4f}}}{{{cell.total:.4f}}} = {cell.weight:.4f}")
    if cell.sink:
        share, value = f"{cell.sink / cell.total:.1%}", f"{cell.sink:.4f}"
        message = _(
            "The sink adds {value} to the denominator and takes {share} of this row.",
            value=value,
            share=share,
        )
        if is_look:
            message = _(
                "A sink or keys outside the crop add {value} to the denominator and take "
                "{share} of this row.",
                value=value,
                share=share,
            )
        st.caption(message)


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
            "Measured by projection onto the output. By length alone it is {norm}.",
            norm=f"{cell.norm_share * 100:.1f}%",
        ),
    )
