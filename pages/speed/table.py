"""Everything that this session has measured, in one table, and as a file."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.speed import state
from pages.speed import words as speed_words
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import SpeedReport, to_csv


def table() -> None:
    """Show one line for each measurement, and offer every round as CSV."""
    timed = [(label, report) for label, report in state.results().values() if report.timed]
    if not timed:
        return
    st.header(_("Measured in this session"), anchor=False)
    rows = [row for label, report in timed for row in _rows(label, report)]
    columns = [
        _("comparison"),
        _("times as fast"),
        _("side"),
        _("lowest"),
        _("highest"),
        _("model"),
    ]
    frame = pd.DataFrame(rows, columns=columns)
    form = st.column_config.NumberColumn(format="%.2f x", width=80)
    config = {
        columns[0]: st.column_config.TextColumn(width=215),
        columns[1]: st.column_config.NumberColumn(format="%.2f x", width=110),
        **{name: form for name in columns[3:5]},
    }
    st.dataframe(frame, hide_index=True, column_config=config)
    st.download_button(
        _("Every round, as CSV"),
        to_csv([report for _label, report in timed]),
        "speed.csv",
        "text/csv",
        icon=":material/download:",
        key="speed-csv",
    )


def _rows(label: str, report: SpeedReport) -> list[tuple[str, float, str, float, float, str]]:
    case = report.timed[-1]
    name = _(COMPARISONS[report.name].label)
    if len(case.sides) == 1:
        first = report.timed[0]
        gain = (first.time(case.reference).median * (case.x or 1)) / case.time(
            case.reference
        ).median
        side = _("{n:,.0f} at a time", n=case.x or 1)
        return [(name, gain, side, gain, gain, label)]
    rows = []
    for side in case.sides[1:]:
        ratio = case.gain(side)
        words = speed_words.side_label(report.name, side)
        rows.append((name, ratio.median, words, ratio.low, ratio.high, label))
    return rows
