"""The result: equality, gain, when not to use it, code, and all measurements."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _, ngettext, paragraph
from pages.speed import state, words
from pages.ui import show
from pages.ui.model import question
from tfm_core.inspect.speed import questions
from tfm_core.inspect.speed.paired import TimeRange
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import (
    PRESET,
    CaseReport,
    Equality,
    RecordedReport,
    SpeedReport,
    to_csv,
)
from tfm_core.inspect.syntax import source_of
from tfm_core.plots.training import speed as plots
from tfm_core.presets import PRESETS

_FASTEST = "fastest"


def result(report: SpeedReport) -> None:
    if report.problem is not None:
        st.warning(_(report.problem), icon=":material/stop_circle:")
    timed = report.timed
    if not timed:
        return
    if not _equal(report.name, [equality for case in timed for equality in case.equalities]):
        return
    if not _fastest(report):
        return
    st.header(_("2 · What is gained"), anchor=False)
    if COMPARISONS[report.name].x_title:
        _curves(report, timed)
    else:
        for number, case in enumerate(timed):
            _pair(report, case, number)
    if report.peak_bytes:
        st.caption(
            paragraph("speed/rounds",
                n=len(timed[0].seconds[timed[0].reference]), size=show.size(report.peak_bytes)
            )
        )  # fmt: skip
    st.header(_("3 · When not to use it"), anchor=False)
    for sentence in words.verdict(report):
        st.markdown(sentence)


def recorded_result(record: RecordedReport) -> None:
    """Show what was measured beforehand, on a preset, and that it was."""
    result(record.report)
    if _is_open(record.report):
        preset = _(PRESETS[PRESET].label)
        show.prose(paragraph("speed/recorded", day=record.day, torch=record.torch, preset=preset))


def _equal(name: str, equalities: list[Equality]) -> bool:
    """Ask whether the numbers are the same; return whether that was guessed, and is shown."""
    st.header(_("1 · The same numbers?"), anchor=False)
    if not question.guess(questions.about_equality(equalities), "equality", of=name):
        return False
    worst = max(equalities, key=lambda equality: equality.difference / (equality.tolerance or 1.0))
    values = {"difference": worst.difference, "what": _(worst.what), "tolerance": worst.tolerance}
    if not all(equality.is_equal for equality in equalities):
        st.error(paragraph("speed/not-equal", **values), icon=":material/error:")
    elif worst.tolerance == 0:
        st.success(_("**Yes.** Every number is the same, bit for bit."), icon=":material/check:")
    else:
        st.success(paragraph("speed/equal", **values), icon=":material/check:")
    label = ngettext("The one check", "All {n} checks", len(equalities), n=len(equalities))
    with st.expander(label):
        frame = pd.DataFrame(
            [
                (_(equality.what), equality.side, equality.difference, equality.tolerance)
                for equality in equalities
            ],
            columns=[_("result"), _("side"), _("largest difference"), _("tolerance")],
        )
        form = st.column_config.NumberColumn(format="%.2e")
        st.dataframe(
            frame, hide_index=True, column_config={name: form for name in frame.columns[2:]}
        )
    return True


def _pair(report: SpeedReport, case: CaseReport, number: int) -> None:
    labels = {side: words.side_label(report.name, side) for side in case.sides}
    part = _(case.part)
    st.subheader(part[:1].upper() + part[1:], anchor=False)
    numbers = words.indices(report.name, case)
    seconds = {labels[side]: case.time(side) for side in case.sides}
    gains = {labels[side]: case.gain(side) for side in case.sides[1:]}
    show.figure(
        plots.times(seconds, gains, report.clock, numbers),
        words.gain(report, case),
        key=f"speed-times-{number}",
    )
    if any(case.n_bytes.values()):
        show.figure(
            plots.counted({labels[side]: case.n_bytes[side] for side in case.sides}, numbers),
            paragraph("speed/saved-bytes"),
            key=f"speed-bytes-{number}",
        )


def _curves(report: SpeedReport, timed: list[CaseReport]) -> None:
    x_title = _(COMPARISONS[report.name].x_title)
    x = [case.x or 0.0 for case in timed]
    lines = {}
    for side in timed[0].sides:
        label = words.side_label(report.name, side)
        lines[label] = (x, [words.scaled(case.time(side), 1000) for case in timed])
    y_title = _("milliseconds ({clock})", clock=report.clock)
    crossing = words.crossing(report) if report.name == "gpu" else None
    show.figure(
        plots.curves(lines, x_title, y_title, "ms", crossover=crossing),
        words.gain(report, timed[-1]),
        key="speed-curve",
    )
    if report.name == "batch":
        rates = [words.rate(case.time(case.reference), case.x or 1.0) for case in timed]
        figure = plots.curves(
            {_("examples a second"): (x, rates)}, x_title, _("examples a second"), "examples/s"
        )
        show.figure(
            figure, _("Where the line flattens, larger batches gain nothing."), "speed-rate"
        )
    if any(timed[0].n_bytes.values()):
        saved = {
            words.side_label(report.name, side): (
                x,
                [TimeRange.of([case.n_bytes[side] / 2**20]) for case in timed],
            )
            for side in timed[0].sides
        }
        figure = plots.curves(saved, x_title, _("saved for backward (MiB)"), "MiB")
        show.figure(figure, paragraph("speed/saved-lines"), "speed-kept")


def code(name: str) -> None:
    with st.expander(_("The code of each side"), icon=":material/code:"):
        for label, path in COMPARISONS[name].code.items():
            st.markdown(f"**{_(label)}** · `{path.replace(':', '.')}`")
            st.code(source_of(path), language="python")


def _fastest(report: SpeedReport) -> bool:
    """Ask which side is fastest, if there are several; return whether the times may be shown."""
    case = report.timed[0]
    if len(case.sides) < 2:
        return True
    labels = {side: words.side_label(report.name, side) for side in case.sides}
    asked = questions.about_fastest(case, labels, words.is_tie)
    return question.guess(asked, _FASTEST, of=report.name)


def _is_open(report: SpeedReport) -> bool:
    return len(report.timed[0].sides) < 2 or question.is_guessed(_FASTEST, of=report.name)


def table() -> None:
    """Show what was measured in this session, except what is still to be guessed."""
    timed = [
        (label, report)
        for label, report in state.results().values()
        if report.timed and _is_open(report)
    ]
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
        seconds = case.time(case.reference).median
        gain = first.time(case.reference).median * (case.x or 1) / seconds
        side = _("{n:,.0f} at a time", n=case.x or 1)
        return [(name, gain, side, gain, gain, label)]
    rows = []
    for side in case.sides[1:]:
        ratio = case.gain(side)
        side_label = words.side_label(report.name, side)
        rows.append((name, ratio.median, side_label, ratio.low, ratio.high, label))
    return rows
