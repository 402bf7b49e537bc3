"""How a weight and an answer come about: the arithmetic of a cell, rollout, explanations."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import streamlit as st

from pages.app import show, state
from pages.app.typed import escape
from pages.components import live_figure
from pages.i18n import _, content, paragraph
from pages.look_inside.attention.maps import HIGHEST, Shown, cell_of, choose
from tfm_core import byte_cache
from tfm_core.choices.config import Experiment, built
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.inspect.attention import explanations as explaining
from tfm_core.inspect.attention import trained
from tfm_core.inspect.attention.cell import (
    AttentionCell,
    Trace,
    cell,
    dimensions_table,
    row_table,
    seen,
    traced,
)
from tfm_core.inspect.positions.similarity import geometry, tiles_of
from tfm_core.plots.heads.attention import head_map
from tfm_core.plots.heads.patches import patch_overlay
from tfm_core.plots.model.positions import position_tiles
from tfm_core.probe.labels import rows
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run

_TALL = 320  # pixels of a table; longer ones scroll


def arithmetic(shown: Shown) -> None:
    """Show how the weight of the chosen cell is computed, with the model's own numbers."""
    place, names = cell_of(shown), shown.names
    words = rows(shown.experiment, shown.example.item, shown.module, shown.rows_by).words
    query, key = "attention-cell-query", "attention-cell-key"
    st.session_state[query], st.session_state[key] = place

    def picked() -> None:
        choose(cell=(st.session_state[query], st.session_state[key]))

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.selectbox(
            _("Query (attends from)"),
            range(len(names.query)),
            format_func=lambda i: _(words[i]),
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
        trace = _trace(shown)
        found = cell(shown.experiment, trace, shown.chosen.head, *place)
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
        _product(found)
    with score:
        _score(found, "" if is_look else built(shown.experiment.model).position)
    with softmax:
        _softmax(found, is_look=is_look)
    with output:
        _output(found, _(words[place[0]]))


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


def _trace(shown: Shown) -> Trace:
    run, example = shown.run, shown.example
    if not run.experiment.task.has_model:
        return seen(run, shown.number or 0, shown.module)
    picture = None if example.picture is None else example.picture.tobytes()
    shape = () if example.picture is None else example.picture.shape
    item = json.dumps({name: list(example.item.get(name, ())) for name in ("src", "tgt")})
    return _traced(run.folder, trained.checkpoint_mark(run), item, shown.module, picture, shape)


@byte_cache.cached
def _traced(
    folder: Path, mark: int, item: str, module: str, picture: bytes | None, shape: tuple[int, ...]
) -> Trace:
    pixels = None if picture is None else np.frombuffer(picture, np.uint8).reshape(shape)
    return traced(Run(folder), json.loads(item), module, pixels)


def rollout(shown: Shown) -> None:
    """Show what of each input token reaches each position through all layers."""
    one = shown.head()
    maps = list(shown.example.maps(shown.modules))
    reached = explaining.rollout(maps).astype(np.float32)
    figure = head_map(replace(one, weights=one.cut(reached)), theme=state.theme(), top=None)
    figure.update_layout(height=min(figure.layout.height, HIGHEST))
    live_figure.live_figure(figure, key="attention-rollout", name=_("Rollout over all layers"))
    st.caption(paragraph("attention/rollout"))


def explanations(shown: Shown) -> None:
    """Show three explanations of the answer to a picture."""
    run, picture = shown.run, shown.example.picture
    assert picture is not None
    names = run.experiment.task.class_names
    target = st.selectbox(
        _("The class to explain"),
        [None, *range(len(names))],
        format_func=lambda index: _("The predicted class") if index is None else names[index],
        key="attention-explained-class",
        persist_state="session",
        help=_("Only relevance depends on the class."),
    )
    try:
        step, label, probabilities, maps = _explained(
            run.folder,
            trained.checkpoint_mark(run),
            picture.tobytes(),
            picture.shape,
            target,
        )
    except ValueError as error:
        show.problem(error)
        return
    name = names[label]
    share = show.percent(float(probabilities[label]))
    words = _(
        "What supports **{name}** ({share} at step {step})?",
        name=name,
        step=f"{step:,}",
        share=share,
    )
    if run.experiment.training is None:
        words = _("What supports **{name}** ({share})?", name=name, share=share)
    st.markdown(words)
    for column, (kind, values) in zip(st.columns(3), maps.items(), strict=True):
        with column:
            st.markdown(f"**{_(explaining.EXPLANATIONS[kind].label)}**")
            figure = patch_overlay(values, picture, theme=state.theme())
            figure.update_layout(height=300, margin={"l": 4, "r": 4, "t": 44, "b": 4})
            show.figure(
                figure, _(explaining.EXPLANATIONS[kind].help), key=f"attention-explain-{kind}"
            )
    show.prose(content("attention_explanation"))


@lru_cache(maxsize=16)
def _explained(
    folder: Path, mark: int, picture: bytes, shape: tuple[int, ...], target: int | None
) -> tuple[int, int, Floats, dict[str, Floats]]:
    pixels = np.frombuffer(picture, np.uint8).reshape(shape)
    return explaining.explained(Run(folder), pixels, target)


def positions_are_learned(experiment: Experiment) -> bool:
    if not experiment.patches_per_side:
        return False
    return POSITIONS[built(experiment.model).position].has_table


def positions(shown: Shown) -> None:
    """Show how alike the position of each patch is to those of all others, at a step."""
    run, step, begun = shown.run, shown.step, shown.run.snapshot_steps()[0]
    try:
        tiles = tiles_of(run.experiment, run.snapshot(step))
        first = tiles_of(run.experiment, run.snapshot(begun))
    except ValueError as error:
        show.problem(error)
        return
    words = paragraph("attention/tiles")
    figure = position_tiles(tiles, state.theme())
    figure.update_layout(margin={"b": 48}).update_xaxes(title={"standoff": 24})
    show.figure(figure, words, key="attention-positions")
    show.prose(
        paragraph(
            "attention/share-a-line",
            now=f"{geometry(tiles):+.3f}",
            step=f"{step:,}",
            first_step=f"{begun:,}",
            then=f"{geometry(first):+.3f}",
        )
    )
