"""Export: the view as a picture, as a page that works offline, as numbers, as a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from pages.attention import heads
from pages.attention.figures import all_heads, one_head, over_picture
from pages.attention.selection_link import Selection
from pages.components.buttons import svg_as_png
from pages.components.heads import (
    GridStyle,
    SnapshotAnimation,
    pack_grid,
    pack_lines,
    single_frame,
    standalone,
)
from pages.i18n import _, language, speaking
from pages.ui import state
from pages.ui.runs import run_words
from tfm_core.inspect.attention import head_statistics
from tfm_core.inspect.attention.example import Example
from tfm_core.plots import export
from tfm_core.plots.export import map_svg
from tfm_core.plots.heads.attention import head_map
from tfm_core.plots.palette import COLOURS
from tfm_core.probe.labels import kinds_of, modules_by_kind, written_tokens
from tfm_core.runs.run import Run


def take_away(
    run: Run,
    example: Example,
    selection: Selection,
    *,
    top: float | None,
    animation: SnapshotAnimation | None,
    step: int,
) -> None:
    selection = replace(selection, tokens=None)  # files hold the whole maps
    name = f"attention-{selection.kind}-step-{example.step}"
    one = f"{name}-layer-{selection.layer + 1}-head-{selection.head + 1}"
    left, middle, right = st.columns(3, gap="medium")
    with left:
        st.markdown(_("**All heads**"))
        _download(
            _("Animation (HTML, offline)"),
            partial(_page, run, example, selection, top, animation),
            f"{name}.html",
            "text/html",
            _("All heads at every snapshot."),
        )
        _download(
            _("Numbers (CSV)"),
            partial(_all_numbers, run, example, selection),
            f"{name}.csv",
            "text/csv",
            _("One line per weight, for every head."),
        )
        st.caption(_("For PNG and SVG, see below the grid."))
    with middle:
        st.markdown(_("**This head**"))
        _download(
            _("Interactive page"),
            partial(_map_page, run, example, selection, top),
            f"{one}.html",
            "text/html",
            _("The map with zoom and hover, offline, 4.5 MB."),
        )
        _download(
            "SVG",
            partial(_map, run, example, selection, top),
            f"{one}.svg",
            "image/svg+xml",
        )
        svg_as_png(
            _map(run, example, selection, top).decode(),
            name=one,
            label="PNG",
            help_text=_("Twice the size, with a title."),
            key="attention-take-png",
        )
        _download(
            _("Numbers (CSV)"),
            partial(_one_numbers, run, example, selection),
            f"{one}.csv",
            "text/csv",
            _("One line per cell: tokens and weight."),
        )
        st.caption(_("For PNG and SVG, see below the lines."))
    with right:
        st.markdown(_("**What heads do**"))
        _download(
            _("Figures (CSV)"),
            partial(_figures, run, step),
            f"heads-step-{step}.csv",
            "text/csv",
        )
        st.markdown(_("**Link to this view**"))
        st.code(state.run_link(run.id), language=None, wrap_lines=True)


def _download(
    label: str, make: Callable[[], bytes], name: str, mime: str, help_text: str = ""
) -> None:
    spoken = language()

    def made() -> bytes:
        with speaking(spoken):  # it is made when it is asked for, outside of the session
            return make()

    st.download_button(
        label,
        made,
        file_name=name,
        mime=mime,
        help=help_text or None,
        key=f"attention-take-{name.rpartition('.')[2]}-{label}-{'layer' in name}",
        icon=":material/download:",
        on_click="ignore",
        width="stretch",
    )


def _page(
    run: Run,
    example: Example,
    selection: Selection,
    top: float | None,
    animation: SnapshotAnimation | None,
) -> bytes:
    kind = kinds_of(run.experiment)[selection.kind]
    labels = heads.labels(run, example, selection.kind, is_own=selection.example is None)
    view = all_heads(run, example, selection)
    style = GridStyle(
        chosen=(selection.layer, selection.head),
        theme="light",
        top=top,
        animation=animation or single_frame(view.weights, example.step, labels.short),
        step=example.step,
        over=over_picture(run, example, selection),
        says=True,
    )
    head = view.head(selection.layer, selection.head)
    return standalone(
        pack_grid(view, style),
        pack_lines(head, ink=COLOURS["cross"], pin=selection.pin),
        title=f"{_(kind.label)}: {run_words.name(run)}",
        words=f"{_(kind.help)} {_(kind.look_for)}",
        which=_("Layer {layer}, head {head}", layer=selection.layer + 1, head=selection.head + 1),
        theme="light",
    )


def _map(run: Run, example: Example, selection: Selection, top: float | None) -> bytes:
    title = _title(run, example, selection)
    return map_svg(one_head(run, example, selection), title=title, top=top, say=_)


def _map_page(run: Run, example: Example, selection: Selection, top: float | None) -> bytes:
    figure = head_map(one_head(run, example, selection), top=top)
    words = _(kinds_of(run.experiment)[selection.kind].look_for)
    title = _title(run, example, selection)
    return export.page(figure, title=title, words=words, language=language(), say=_)


def _one_numbers(run: Run, example: Example, selection: Selection) -> bytes:
    read = replace(selection, rows="read")
    module = modules_by_kind(run.experiment)[selection.kind][selection.layer]
    written = written_tokens(run.experiment, example.item, module)
    return export.csv(export.map_table(one_head(run, example, read), written))


def _all_numbers(run: Run, example: Example, selection: Selection) -> bytes:
    view = all_heads(run, example, replace(selection, rows="read"))
    module = modules_by_kind(run.experiment)[selection.kind][0]
    written = written_tokens(run.experiment, example.item, module)
    tables = []
    for layer, head in np.ndindex(view.weights.shape[:2]):
        table = export.map_table(view.head(layer, head), written)
        table.insert(0, "head", head + 1)
        table.insert(0, "layer", layer + 1)
        tables.append(table)
    return export.csv(pd.concat(tables))


def _figures(run: Run, step: int) -> bytes:
    figures = heads.statistics_at(run, step)
    scores = heads.alignments(run, step)
    return export.csv(head_statistics.table(run.experiment, figures, scores))


def _title(run: Run, example: Example, selection: Selection) -> str:
    label = _(kinds_of(run.experiment)[selection.kind].label)
    return _(
        "{run}: {kind}, layer {layer}, head {head}, step {step:,}",
        run=run.meta.name,
        kind=label,
        layer=selection.layer + 1,
        head=selection.head + 1,
        step=example.step,
    )
