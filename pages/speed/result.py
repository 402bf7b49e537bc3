"""The result: equality, gain, when not to use it, and the code."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _, ngettext, paragraph
from pages.speed import words
from pages.ui import show
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import (
    PRESET,
    CaseReport,
    Equality,
    SpeedReport,
)
from tfm_core.inspect.syntax import source_of
from tfm_core.plots.training import speed as plots
from tfm_core.presets import PRESETS


def result(report: SpeedReport) -> None:
    if report.problem is not None:
        st.warning(_(report.problem), icon=":material/stop_circle:")
    timed = report.timed
    if not timed:
        return
    _equal([equality for case in timed for equality in case.equalities])
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


def recorded_result(report: SpeedReport, torch: str, day: str) -> None:
    """Show what was measured beforehand, on a preset, and that it was."""
    result(report)
    preset = _(PRESETS[PRESET].label)
    show.prose(paragraph("speed/recorded", day=day, torch=torch, preset=preset))


def _equal(equalities: list[Equality]) -> None:
    """Say whether all sides compute the same numbers."""
    st.header(_("1 · The same numbers?"), anchor=False)
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
    taken = [case.time(case.reference) for case in timed]
    y_title = _("milliseconds ({clock})", clock=report.clock)
    show.figure(
        plots.curve(x, [words.scaled(one, 1000) for one in taken], x_title, y_title, "ms"),
        words.gain(report, timed[-1]),
        key="speed-curve",
    )
    rates = [words.rate(one, count) for one, count in zip(taken, x, strict=True)]
    show.figure(
        plots.curve(x, rates, x_title, _("examples a second"), "examples/s"),
        _("Where the line flattens, larger batches gain nothing."),
        key="speed-rate",
    )


def code(name: str) -> None:
    with st.expander(_("The code of each side"), icon=":material/code:"):
        for label, path in COMPARISONS[name].code.items():
            st.markdown(f"**{_(label)}** · `{path.replace(':', '.')}`")
            st.code(source_of(path), language="python")
