"""The curves of all runs in one figure, and its controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import plotly.graph_objects as go
import streamlit as st

from pages.compare import seeds
from pages.compare.choice import StyledRun
from pages.compare.link import AXIS, BANDS, LOG_X, LOG_Y, METRIC, WINDOW
from pages.components.live_figure import live_figure
from pages.i18n import _, language
from pages.ui import state
from pages.ui.address import view_link
from pages.ui.runs import runs_access
from pages.ui.typed import escape
from tfm_core.inspect.compare.curves import AXES, METRICS, AxisName, caveats, track
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.runs.curves import Curves

_HEIGHT, _PER_PANEL = 62, 126  # pixels: two panels fit the first screen
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class CurveChoice:
    """What is drawn of each run, and how. has_bands: chosen, and there are seeds to average."""

    metrics: tuple[str, ...]
    axis: AxisName
    window: int
    is_log_x: bool
    is_log_y: bool
    has_bands: bool


def figure(shown: Sequence[StyledRun], grouped: Sequence[seeds.SeedGroup], had_bands: bool) -> None:
    """Draw the chosen quantities of all runs.

    had_bands: whether the page was drawn with bands; a press here redraws only this part.
    """
    choice = _controls(has_seeds=seeds.has_seeds(grouped))
    if seeds.has_bands(grouped) != had_bands:
        state.draw_anew()  # the table shows the line styles
    if not choice.metrics:
        st.info(_("Choose a quantity above."), icon=":material/info:")
        return
    for sentence in caveats([entry.run.experiment for entry in shown], choice.metrics):
        st.caption(f":material/warning: {_(sentence)}")
    curves = {entry.run.id: runs_access.curves(entry.run) for entry in shown}
    marks = tuple(_mark(entry, curves[entry.run.id]) for entry in shown)
    figure, notes = _figure(choice, marks, language(), list(shown), curves, grouped)
    if figure is None and notes:
        st.info(" ".join(notes), icon=":material/info:")
    elif all(entry.run.status.state == "opened" for entry in shown):
        st.info(
            _("These models were not trained here, so they have no curves."),
            icon=":material/folder_open:",
        )
    elif figure is None:
        st.info(_("Waiting for the first measurement."), icon=":material/hourglass_empty:")
    else:
        labels = ", ".join(_(METRICS[metric].label) for metric in choice.metrics)
        words = _("Curves of {n} runs: {drawn}", n=len(shown), drawn=labels)
        live_figure(figure, key="compare-curves", name=words)
        if notes:
            st.caption(" ".join(notes))


def _controls(*, has_seeds: bool) -> CurveChoice:
    problems = [
        view_link.receive(parameter) for parameter in (METRIC, AXIS, WINDOW, LOG_X, LOG_Y, BANDS)
    ]
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="compare-controls"
    ):
        metrics = st.multiselect(
            _("Quantities"),
            list(METRICS),
            format_func=lambda name: _(METRICS[name].label),
            key=METRIC.key,
            max_selections=METRIC.maximum,
            persist_state="session",
            width=440,
        )
        axis = st.selectbox(
            _("Along"),
            list(AXES),
            format_func=lambda name: _(AXES[name]),
            key=AXIS.key,
            persist_state="session",
            width=140,
        )
        window = st.select_slider(
            _("Training smoothing"),
            [int(option) for option in WINDOW.options],
            key=WINDOW.key,
            format_func=lambda n: _("off") if n == 1 else _("mean of {n}", n=n),
            help=_("Averages this many training values."),
            persist_state="session",
            width=200,
        )
        is_log_x = st.toggle(_("Log x"), key=LOG_X.key, persist_state="session")
        is_log_y = st.toggle(
            _("Log y"),
            key=LOG_Y.key,
            persist_state="session",
            help=_("Not for percentages."),
        )
        has_bands = bool(st.session_state[BANDS.key])
        if has_seeds:
            has_bands = st.toggle(
                _("Average seeds"),
                key=BANDS.key,
                persist_state="session",
                help=_("Mean ± one standard deviation."),
            )
    for sentence in problems:
        view_link.warn(sentence)
    chosen: AxisName = cast(AxisName, axis if axis in AXES else AXIS.first)
    view_link.say(METRIC, tuple(metrics))
    view_link.say(AXIS, chosen)
    view_link.say(WINDOW, window)
    for flag, is_on in ((LOG_X, is_log_x), (LOG_Y, is_log_y), (BANDS, has_bands)):
        view_link.say(flag, is_on)
    return CurveChoice(
        tuple(metrics), chosen, int(window), is_log_x, is_log_y, has_seeds and has_bands
    )


def _mark(entry: StyledRun, curves: Curves) -> tuple[object, ...]:
    """Return a cache key that changes exactly when the line of a run does."""
    sizes = [(len(series), series.last("step")) for series in (curves.steps, curves.validation)]
    return (
        entry.run.id,
        entry.name,
        entry.slot,
        *sizes,
        bool(curves.started),
        bool(curves.finished),
    )


@st.cache_resource(show_spinner=False, max_entries=32)
def _figure(
    choice: CurveChoice,
    marks: tuple[object, ...],
    spoken: str,
    _shown: Sequence[StyledRun],
    _curves: dict[str, Curves],
    _grouped: Sequence[seeds.SeedGroup],
) -> tuple[go.Figure | None, list[str]]:
    along, window = choice.axis, choice.window
    is_banded = choice.has_bands and along in seeds.WITH_BANDS
    summed = (
        {entry.run.id for group in _grouped if len(group.members) > 1 for entry in group.members}
        if is_banded
        else set()
    )
    panels, lost, estimated, longest = [], dict[str, None](), dict[str, None](), 0
    for metric in choice.metrics:
        lines = []
        for entry in _shown:
            curve = track(_curves[entry.run.id], entry.run.experiment, metric, along)
            if curve is None and len(_curves[entry.run.id].steps):
                lost[entry.name] = None
            if curve is None or not len(curve.values):
                continue
            is_faint = entry.run.id in summed
            lines.append(RunLine(entry.name, entry.slot, curve.x, curve.values, is_faint=is_faint))
            longest = max(longest, len(curve.values))
            if curve.is_reckoned:
                estimated[entry.name] = None
        facts = METRICS[metric]
        panels.append(
            CurvePanel(
                _(facts.label),
                lines,
                seeds.bands(_grouped, metric, along, window) if is_banded else (),
                is_share=facts.is_share,
                is_noisy=facts.series == "steps",
            )
        )
    notes = _notes(list(lost), list(estimated), longest, plots.most_points(panels, window))
    if choice.has_bands and not is_banded:
        notes.append(_("No averages on this axis."))
    if not any(panel.lines for panel in panels):
        return None, notes
    figure = plots.comparison(
        panels,
        _(AXES[along]),
        window=window,
        is_log_x=choice.is_log_x,
        is_log_y=choice.is_log_y,
        height=_HEIGHT + _PER_PANEL * len(panels),
    )
    figure.update_layout(uirevision=f"{choice.metrics} {along} {choice.is_log_x} {choice.is_log_y}")
    return figure, notes


def _notes(lost: Sequence[str], estimated: Sequence[str], longest: int, most: int) -> list[str]:
    notes = []
    if longest > most:
        notes.append(_("Thinned to {most} points; every spike stays.", most=most))
    if estimated:
        names = _listed(estimated)
        notes.append(_("Time of {names}: estimated from the speed.", names=names))
    if lost:
        notes.append(_("Not recorded on this axis: {names}.", names=_listed(lost)))
    return notes


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"“{escape(name)}”" for name in names[:_MAX_LISTED])
    return listed + (", …" if len(names) > _MAX_LISTED else "")
