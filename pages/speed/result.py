"""The result: equality, gain, when not to use it, and the code."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import streamlit as st

from pages.i18n import _, ngettext, paragraph
from pages.ui import show
from tfm_core.inspect.speed.paired import TimeRange
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

TIE = 0.05
"""A ratio whose logarithm is nearer to 0 than this counts as no difference."""


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
            paragraph(
                "speed/rounds",
                n=len(timed[0].seconds[timed[0].reference]),
                size=show.size(report.peak_bytes),
            )
        )
    st.header(_("3 · When not to use it"), anchor=False)
    for sentence in verdict(report):
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
    labels = {side: side_label(report.name, side) for side in case.sides}
    part = _(case.part)
    st.subheader(part[:1].upper() + part[1:], anchor=False)
    numbers = indices(report.name, case)
    seconds = {labels[side]: case.time(side) for side in case.sides}
    gains = {labels[side]: case.gain(side) for side in case.sides[1:]}
    show.figure(
        plots.times(seconds, gains, report.clock, numbers),
        gain(report, case),
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
        plots.curve(x, [scaled(one, 1000) for one in taken], x_title, y_title, "ms"),
        gain(report, timed[-1]),
        key="speed-curve",
    )
    rates = [rate(one, count) for one, count in zip(taken, x, strict=True)]
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


def side_label(name: str, side: str) -> str:
    return _(COMPARISONS[name].sides[side])


def indices(name: str, case: CaseReport) -> list[int]:
    """Return the positions of a case's sides among all sides of its comparison."""
    sides = list(COMPARISONS[name].sides)
    return [sides.index(side) if side in sides else i for i, side in enumerate(case.sides)]


def scaled(spread: TimeRange, factor: float) -> TimeRange:
    return TimeRange(spread.median * factor, spread.low * factor, spread.high * factor)


def rate(seconds: TimeRange, count: float) -> TimeRange:
    """Return examples a second; the slowest round is the lowest rate."""
    return TimeRange(count / seconds.median, count / seconds.high, count / seconds.low)


def gain(report: SpeedReport, case: CaseReport) -> str:
    """Return the ratios of a case, round by round, as the caption of its figure."""
    if len(case.sides) == 1:
        return _("One more example costs little at first, then its full share.")
    words = []
    first = side_label(report.name, case.reference)
    for side in case.sides[1:]:
        ratio = case.gain(side)
        values = {"label": side_label(report.name, side), "ratio": ratio.show("x"), "first": first}
        if is_tie(ratio):
            words.append(_("“{label}”: no clear difference from “{first}”, {ratio}.", **values))
        else:
            words.append(_("“{label}”: {ratio} as fast as “{first}”.", **values))
    return " ".join(words)


def verdict(report: SpeedReport) -> list[str]:
    """Return messages on when not to use it: first this measurement, then the rule."""
    return [*_FINDINGS[report.name](report), paragraph(f"speed/rule-{report.name}")]


def _one(report: SpeedReport, case: CaseReport, side: str) -> str:
    ratio = case.gain(side)
    values = {"label": side_label(report.name, side), "ratio": ratio.show("x")}
    if is_tie(ratio):
        return _("**{label}** made no clear difference here ({ratio}).", **values)
    if ratio.median > 1:
        return _("**{label}** was {ratio} as fast here.", **values)
    return " ".join(
        [
            _("**{label}** was slower here: {ratio} as fast.", **values),
            _("On small maps, tiling costs more than storing the map.")
            if report.name == "attention"
            else _("Without fast 16-bit units, products are converted twice."),
        ]
    )


def is_tie(ratio: TimeRange) -> bool:
    """Return whether a ratio is too near to 1, or its rounds lie on both sides of 1."""
    return abs(math.log(ratio.median)) < TIE or ratio.low < 1 < ratio.high


def _attention(report: SpeedReport) -> list[str]:
    alone = report.timed[0]
    facts = alone.facts
    sentences = [
        paragraph("speed/kernel", backend=facts.get("backend"), shape=facts.get("shape")),
        _one(report, alone, "fused"),
        paragraph("speed/einsum", ratio=alone.gain("einsum").show("x")),
    ]
    if len(report.timed) > 1:
        whole = report.timed[1].gain("fused")
        if whole.median < alone.gain("fused").median:
            sentences.append(_("The whole pass gains less: {ratio}.", ratio=whole.show("x")))
        else:
            sentences.append(_("The whole pass was {ratio} as fast.", ratio=whole.show("x")))
    return sentences


def _checkpointing(report: SpeedReport) -> list[str]:
    case = report.timed[-1]
    saved, slower = case.n_bytes, case.gain("checkpointed").median
    return [
        paragraph(
            "speed/checkpointing",
            less=saved["plain"] / max(1, saved["checkpointed"]),
            after=show.size(saved["checkpointed"]),
            before=show.size(saved["plain"]),
            longer=1 / slower,
        ),
        *(_one(report, case, side) for side in ("bf16", "fp16")),
    ]


def _batch(report: SpeedReport) -> list[str]:
    timed = report.timed
    rates = [(case.x or 1.0) / case.time(case.reference).median for case in timed]
    best = max(range(len(rates)), key=rates.__getitem__)
    return [
        paragraph(
            "speed/best-batch", x=timed[best].x or 0, rate=rates[best], times=rates[best] / rates[0]
        )
    ]


_FINDINGS: dict[str, Callable[[SpeedReport], list[str]]] = {
    "attention": _attention,
    "batch": _batch,
    "checkpointing": _checkpointing,
}
