"""What a measurement found: equal first, then the gain, then when not to use it, then the code."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _, ngettext
from pages.speed import words as speed_words
from pages.ui import show
from tfm_core.inspect.speed.paired import TimeRange
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import PRESET, CaseReport, Equality, SpeedReport, recorded
from tfm_core.inspect.syntax import source_of
from tfm_core.plots import speed as plots
from tfm_core.presets import PRESETS


def result(report: SpeedReport) -> None:
    """Show a report, complete or not."""
    if report.problem is not None:
        st.warning(_(report.problem), icon=":material/stop_circle:")
    timed = report.timed
    if not timed:
        return
    _equal([one for case in timed for one in case.equalities])
    st.header(_("2 · What is gained"), anchor=False)
    if COMPARISONS[report.name].x_title:
        _curves(report, timed)
    else:
        for number, case in enumerate(timed):
            _pair(report, case, number)
    if report.peak_bytes:
        st.caption(
            _("Medians of {n} rounds; whiskers run from the fastest to the slowest. The "
              "measuring process used at most {size}.",
                n=len(timed[0].seconds[timed[0].reference]), size=show.size(report.peak_bytes)
            )
        )  # fmt: skip
    st.header(_("3 · When not to use it"), anchor=False)
    for sentence in speed_words.verdict(report):
        st.markdown(sentence)


def recorded_one(name: str) -> None:
    """Show what was measured when the app was made, on a preset, where that was recorded."""
    found = recorded(name)
    if found is None:
        return
    st.markdown(
        _(
            ":violet-badge[:material/inventory_2: Recorded] Measured on {day} with "
            "PyTorch {torch} on a server's CPU, on “{preset}”. Your own measurement "
            "replaces it.",
            day=found.day,
            torch=found.torch,
            preset=_(PRESETS[PRESET].label),
        )
    )
    result(found.report)


def _equal(equalities: list[Equality]) -> None:
    st.header(_("1 · The same numbers?"), anchor=False)
    bad = [one for one in equalities if not one.is_equal]
    worst = max(equalities, key=lambda one: one.difference / (one.tolerance or 1.0))
    rule = _(
        "Nearest to its limit: {what}, {difference:.2g} apart; rounding explains {tolerance:.1e}."
    )
    words = rule.format(difference=worst.difference, what=_(worst.what), tolerance=worst.tolerance)
    if worst.tolerance == 0 and not bad:
        words = _("Every number is the same, bit for bit.")
    if bad:
        st.error(_("**Not the same.** ") + words, icon=":material/error:")
    else:
        st.success(_("**Yes.** ") + words, icon=":material/check:")
    label = ngettext("The one check", "All {n} checks", len(equalities), n=len(equalities))
    with st.expander(label):
        frame = pd.DataFrame(
            [(_(one.what), one.side, one.difference, one.tolerance) for one in equalities],
            columns=[_("result"), _("side"), _("largest difference"), _("tolerance")],
        )
        form = st.column_config.NumberColumn(format="%.2e")
        st.dataframe(
            frame, hide_index=True, column_config={name: form for name in frame.columns[2:]}
        )


def _pair(report: SpeedReport, case: CaseReport, number: int) -> None:
    labels = {side: speed_words.side_label(report.name, side) for side in case.sides}
    part = _(case.part)
    st.subheader(part[:1].upper() + part[1:], anchor=False)
    numbers = speed_words.indices(report.name, case)
    seconds = {labels[side]: case.time(side) for side in case.sides}
    gains = {labels[side]: case.gain(side) for side in case.sides[1:]}
    show.figure(
        plots.times(seconds, gains, report.clock, numbers),
        speed_words.gain(report, case),
        key=f"speed-times-{number}",
    )
    if any(case.n_bytes.values()):
        show.figure(
            plots.counted({labels[side]: case.n_bytes[side] for side in case.sides}, numbers),
            _("Counted exactly: what autograd keeps between forward and backward, "
              "without the weights. It is what limits batch size and length on a GPU."),
            key=f"speed-bytes-{number}",
        )  # fmt: skip


def _curves(report: SpeedReport, timed: list[CaseReport]) -> None:
    x_title = _(COMPARISONS[report.name].x_title)
    x = [case.x or 0.0 for case in timed]
    lines = {}
    for side in timed[0].sides:
        label = speed_words.side_label(report.name, side)
        lines[label] = (x, [speed_words.scaled(case.time(side), 1000) for case in timed])
    y_title = _("milliseconds ({clock})", clock=report.clock)
    crossing = speed_words.crossing(report) if report.name == "gpu" else None
    show.figure(
        plots.curves(lines, x_title, y_title, "ms", crossover=crossing),
        speed_words.gain(report, timed[-1]),
        key="speed-curve",
    )
    if report.name == "batch":
        rates = [speed_words.rate(case.time(case.reference), case.x or 1.0) for case in timed]
        figure = plots.curves(
            {_("examples a second"): (x, rates)}, x_title, _("examples a second"), "examples/s"
        )
        show.figure(
            figure, _("Where the line flattens, larger batches gain nothing."), "speed-rate"
        )
    if any(timed[0].n_bytes.values()):
        kept = {
            speed_words.side_label(report.name, side): (
                x,
                [TimeRange.of([case.n_bytes[side] / 2**20]) for case in timed],
            )
            for side in timed[0].sides
        }
        figure = plots.curves(kept, x_title, _("saved for backward (MiB)"), "MiB")
        show.figure(
            figure,
            _("Counted exactly. Where twice the length keeps twice the bytes, they grow with the "
              "length; where it keeps four times as many, with its square."),
            "speed-kept",
        )  # fmt: skip


def code(name: str) -> None:
    """Show the source of both sides."""
    with st.expander(_("The code of each side"), icon=":material/code:"):
        for label, path in COMPARISONS[name].code.items():
            st.markdown(f"**{_(label)}** · `{path.replace(':', '.')}`")
            st.code(source_of(path), language="python")
