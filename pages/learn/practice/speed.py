"""The figure of speed: each technique against the plain code, measured on the reader's model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.article import Made
from pages.app.runs import runs_access, shown_run
from pages.app.settings import model_choice
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext, paragraph
from tfm_core.choices.config import Experiment, to_json
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.speed.report import (
    COMPARISONS,
    PRESET,
    BenchmarkCase,
    SpeedReport,
    TimeRange,
    is_equal,
    recorded,
)
from tfm_core.inspect.syntax import source_of
from tfm_core.plots.training import comparison as plots

if TYPE_CHECKING:
    from tfm_core.inspect.speed.measure import BenchmarkProcess

SCOPE = "speed"
TICK = 0.7  # seconds between refreshes
TIE = 0.05
"""A ratio whose logarithm is nearer to 0 than this counts as no difference."""
_REQUESTED, _RUNNING, _RESULTS = "speed-requested", "speed-running", "speed-results"


@dataclass(frozen=True)
class Speed:
    """What is compared."""

    compare: str = view.choice(
        N_("What to compare"),
        {name: comparison.label for name, comparison in COMPARISONS.items()},
        always_in_url=True,
        is_list=True,
    )


@dataclass(frozen=True, slots=True)
class BenchmarkRequest:
    """A comparison of the registry, on a model and a device; ``label`` names the model."""

    name: str
    experiment: Experiment
    device: str
    label: str

    @property
    def key(self) -> str:
        return f"{self.name} {self.device} {to_json(self.experiment)}"


def speed(_made: Made) -> None:
    """Compare a technique with the plain code; show the recorded result until it is measured."""
    request = _pick()
    if request is None:
        return
    is_offered = _press(request)
    if _requested() is not None:
        st.fragment(_progress, run_every=TICK)()
    report = _results().get(request.key)
    if report is not None:
        _result(report)
    elif _requested() is None:
        record = recorded(request.name)
        if is_offered and record is None:
            st.caption(_("Nothing measured yet for this model."))
        if record is not None:
            report, torch, day = record
            _result(report)
            preset = _(PRESETS[PRESET].label)
            show.prose(paragraph("speed/recorded", day=day, torch=torch, preset=preset))
    with st.expander(_("The code of each side"), icon=":material/code:"):
        for label, path in COMPARISONS[request.name].code.items():
            st.markdown(f"**{_(label)}** · `{path.replace(':', '.')}`")
            st.code(source_of(path), language="python")


def _progress() -> None:
    request = _requested()
    if request is None:  # stopped by an earlier refresh
        return
    measurement: BenchmarkProcess | None = st.session_state.get(_RUNNING)
    with st.container(border=True):
        st.markdown(f"**{_(COMPARISONS[request.name].label)}** · {request.label}")
        if measurement is None:
            _begin(request)
        else:
            report = measurement.poll()
            if not measurement.is_running:
                _keep(request, report)
                state.rerun()
            share = report.done / report.total if report.total else 0.0
            doing, seconds = _(report.doing or "Starting"), show.duration(measurement.seconds)
            st.progress(share, text=_("{doing} · {seconds}", doing=doing, seconds=seconds))
        if st.button(_("Stop"), icon=":material/stop:", key="speed-stop"):
            if measurement is not None:
                measurement.stop(_("Stopped by you."))
                _keep(request, measurement.wait(2.0))
            _forget()
            st.rerun()


def _begin(request: BenchmarkRequest) -> None:
    from tfm_core.inspect.speed.measure import start_measurement

    try:
        measurement = start_measurement(request.name, request.experiment, request.device)
    except ValueError as error:
        st.progress(0.0, text=_("Waiting"))
        st.caption(_(error))
        return
    except OSError as error:
        _forget()
        show.problem(_("The measuring process could not start: {why}", why=_(error)))
        return
    st.session_state[_RUNNING] = measurement
    st.progress(0.0, text=_("Starting"))


def _pick() -> BenchmarkRequest | None:
    """Draw the choices; return None, with a message, if nothing can be measured."""
    name = view.ask(Speed, SCOPE).compare
    chosen, facts, _choices = model_choice.line("speed", shown_run.current_run(), is_trained=True)
    facts.caption(_("Model: **{model}**", model=escape(chosen.label)))
    if chosen.experiment is None:
        st.info(
            _("A published model has only shapes. Choose another model."),
            icon=":material/straighten:",
        )
        return None
    st.markdown(_(COMPARISONS[name].help))
    return BenchmarkRequest(name, chosen.experiment, state.device(), escape(chosen.label))


def _press(request: BenchmarkRequest) -> bool:
    """Offer to measure, or show why it makes no sense here; return whether it is offered."""
    why = COMPARISONS[request.name].why_not(request.experiment)
    if why is not None:
        st.info(_(why), icon=":material/info:")
        return False
    report = _results().get(request.key)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Measure again") if report is not None and report.timed else _("Measure"),
            type="primary",
            icon=":material/speed:",
            key="speed-start",
            disabled=_requested() is not None,
            on_click=st.session_state.update,
            args=({_REQUESTED: request},),  # it starts as soon as no other one runs
        )
        comparison, device = COMPARISONS[request.name], show.device(request.device)
        expected = [_("About {n} s on {device}.", n=comparison.seconds, device=device)]
        if any(run.problem is None and run.status.is_alive for run in runs_access.store().list()):
            expected.append(_("A run is training: times will be longer."))
        st.caption(" ".join(expected))
    return True


def _keep(request: BenchmarkRequest, report: SpeedReport) -> None:
    _results()[request.key] = report
    _forget()


def _forget() -> None:
    st.session_state.pop(_REQUESTED, None)
    st.session_state.pop(_RUNNING, None)


def _requested() -> BenchmarkRequest | None:
    return st.session_state.get(_REQUESTED)


def _results() -> dict[str, SpeedReport]:
    reports: dict[str, SpeedReport] = st.session_state.setdefault(_RESULTS, {})
    return reports


def _result(report: SpeedReport) -> None:
    if report.problem is not None:
        st.warning(_(report.problem), icon=":material/stop_circle:")
    timed = report.timed
    if not timed:
        return
    _equal(report)
    st.subheader(_("2 · What is gained"), anchor=False)
    if COMPARISONS[report.name].x_title:
        _curves(report)
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
    st.subheader(_("3 · When not to use it"), anchor=False)
    for sentence in verdict(report):
        st.markdown(sentence)


def _equal(report: SpeedReport) -> None:
    """Show whether all sides compute the same numbers."""
    st.subheader(_("1 · The same numbers?"), anchor=False)
    equalities = [equality for case in report.timed for equality in case.equalities]
    worst = max(equalities, key=lambda check: check["difference"] / (check["tolerance"] or 1.0))
    values = {**worst, "what": _(worst["what"])}
    if not all(map(is_equal, equalities)):
        st.error(paragraph("speed/not-equal", **values), icon=":material/error:")
    elif worst["tolerance"] == 0:
        st.success(_("**Yes.** Every number is the same, bit for bit."), icon=":material/check:")
    else:
        st.success(paragraph("speed/equal", **values), icon=":material/check:")
    names = [_("result"), _("side"), _("largest difference"), _("tolerance")]
    rows = [(_(check["what"]), *list(check.values())[1:]) for check in equalities]
    form = st.column_config.NumberColumn(format="%.2e")
    with st.expander(ngettext("The one check", "All {n} checks", len(rows), n=len(rows))):
        frame = pd.DataFrame(rows, columns=names)
        st.dataframe(frame, hide_index=True, column_config=dict.fromkeys(names[2:], form))


def _pair(report: SpeedReport, case: BenchmarkCase, number: int) -> None:
    part = _(case.part)
    st.markdown(f"**{part[:1].upper() + part[1:]}**")
    every = list(COMPARISONS[report.name].sides)
    numbers = [every.index(side) for side in case.sides]
    table = case.times()
    table["side"] = [side_label(report.name, side) for side in case.sides]
    figure = plots.times(table, report.clock, numbers)
    show.figure(figure, gain(report, case), key=f"speed-times-{number}")
    if any(case.n_bytes.values()):
        figure = plots.kept_bytes(table, numbers)
        show.figure(figure, paragraph("speed/saved-bytes"), key=f"speed-bytes-{number}")


def _curves(report: SpeedReport) -> None:
    table, x_title = report.curve(), _(COMPARISONS[report.name].x_title)
    y_title = _("milliseconds ({clock})", clock=report.clock)
    figure = plots.curve(table, x_title, y_title)
    show.figure(figure, gain(report, report.timed[-1]), key="speed-curve")
    columns = ("rate", "rate_low", "rate_high")
    figure = plots.curve(table, x_title, _("examples a second"), columns)
    caption = _("Where the line flattens, larger batches gain nothing.")
    show.figure(figure, caption, key="speed-rate")


def side_label(name: str, side: str) -> str:
    return _(COMPARISONS[name].sides[side])


def gain(report: SpeedReport, case: BenchmarkCase) -> str:
    """Return the ratios of a case, round by round, as the caption of its figure."""
    if len(case.sides) == 1:
        return _("One more example costs little at first, then its full share.")
    sentences = []
    first = side_label(report.name, case.reference)
    for side in list(case.sides)[1:]:
        ratio = case.gain(side)
        values = {"label": side_label(report.name, side), "ratio": ratio.show("x"), "first": first}
        if is_tie(ratio):
            sentences.append(_("“{label}”: no clear difference from “{first}”, {ratio}.", **values))
        else:
            sentences.append(_("“{label}”: {ratio} as fast as “{first}”.", **values))
    return " ".join(sentences)


def verdict(report: SpeedReport) -> list[str]:
    """Return messages on when not to use it: first this measurement, then the rule."""
    return [*_FINDINGS[report.name](report), paragraph(f"speed/rule-{report.name}")]


def _side(report: SpeedReport, case: BenchmarkCase, side: str) -> str:
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
        _side(report, alone, "fused"),
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
        *(_side(report, case, side) for side in ("bf16", "fp16")),
    ]


def _batch(report: SpeedReport) -> list[str]:
    table = report.curve()
    best = table.loc[table["rate"].idxmax()]
    times = best["rate"] / table["rate"].iloc[0]
    return [paragraph("speed/best-batch", x=best["x"], rate=best["rate"], times=times)]


_FINDINGS: dict[str, Callable[[SpeedReport], list[str]]] = {
    "attention": _attention,
    "batch": _batch,
    "checkpointing": _checkpointing,
}
