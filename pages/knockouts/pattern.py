"""One head with a pattern of the visitor: its map, and what the model then answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from pages.i18n import _, paragraph
from pages.knockouts.choice import choose_head
from pages.knockouts.link import PATTERN
from pages.knockouts.outcome import Measurement
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.state import theme
from pages.ui.typed import escape
from tfm_core.inspect.attention.map_view import MapView, map_view
from tfm_core.inspect.knockouts import patterns
from tfm_core.inspect.knockouts.causes import can_change
from tfm_core.inspect.knockouts.example import example_without
from tfm_core.inspect.knockouts.parts import (
    Part,
    kind_of_attention,
)
from tfm_core.inspect.knockouts.patterns import Floats
from tfm_core.plots.heads import attention as plots
from tfm_core.runs.run import Run

MAX_EDITED = 50
"""Tokens of a map that is edited cell by cell."""
MAX_ROWS = 8


def part(run: Run, measurement: Measurement, off: Sequence[Part]) -> None:
    """Let the visitor choose a head and its pattern, and show what changes."""
    if not can_change(run):
        st.info(_("This needs a Transformer that answers with words or a class."))
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        head = choose_head(run, off)
        name = view_link.choice(_("Pattern"), PATTERN)
    example = example_without(run, measurement.example, (), measurement.how, measurement.n)
    kind = kind_of_attention(run.experiment, head)
    view = map_view(run.experiment, example, kind=kind, layer=head.layer, head=head.head, say=_)
    begun = patterns.pattern_of(name, view.weights, view.allowed)
    left, right = st.columns(2, gap="medium")
    with left:
        rows = begun
        if max(begun.shape) <= MAX_EDITED:
            rows = _edited(begun, view, f"{run.id}-{measurement.example}-{head.code}-{name}")
        else:
            st.caption(_("Cells can be edited up to {n} tokens.", n=MAX_EDITED))
        _answers(patterns.redrawn(run, measurement.example, head, rows))
    with right:
        shown = replace(view, weights=rows)
        show.figure(
            plots.head_map(shown, theme=theme()),
            _("The pattern: from each query, to its keys."),
            key="knockouts-drawn",
        )


def _edited(begun: Floats, view: MapView, key: str) -> Floats:
    """Let the visitor change cells; return the rows, which sum to 1."""
    cells = patterns.cells_of(begun, view.allowed)
    columns = [str(n) for n in range(len(view.key))]
    frame = pd.DataFrame(cells, columns=columns)
    frame.insert(0, "query", list(view.query))
    number = st.column_config.NumberColumn
    edited = st.data_editor(
        frame,
        hide_index=True,
        column_config={
            "query": st.column_config.TextColumn(
                _(view.query_title), disabled=True, pinned=True, width="small"
            ),
            **{
                column: number(name, format="%.2f", min_value=0, step=0.01, width=76)
                for column, name in zip(columns, view.key, strict=True)
            },
        },
        height=min(410, 38 + 35 * len(frame)),
        key=f"knockouts-pattern-{key}",
    )
    st.caption(paragraph("knockouts/pattern"))
    numbers = edited[columns].to_numpy(dtype=float, na_value=np.nan)
    return patterns.edited(begun, numbers, view.allowed, view.query, view.key)


def _answers(found: pd.DataFrame) -> None:
    st.markdown(
        _(
            "**Other answers: {n} of {total}.** At most {share} of the probability moved.",
            n=int((found["before"] != found["after"]).sum()),
            total=len(found),
            share=show.percent(float(found["moved"].max())),
        )
    )
    rows = [
        [
            f"{at + 1} {escape(row.place)}" if row.place else _("the whole input"),
            f"{escape(row.before)} · {show.percent(row.before_share)}",
            f"{escape(row.after)} · {show.percent(row.after_share)}",
        ]
        for at, row in found.nlargest(MAX_ROWS, "moved").sort_index().iterrows()
    ]
    show.facts(rows, [_("Answers at"), _("Own attention"), _("This pattern")])
