"""The curves of all runs in one figure, and how to draw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import plotly.graph_objects as go
import streamlit as st

from pages.compare import seeds
from pages.compare.link import AXIS, BANDS, LOG_X, LOG_Y, METRIC, WINDOW
from pages.compare.names import Drawn
from pages.components.live_figure import live_figure
from pages.i18n import _, language
from pages.ui import runs_access, state, view_link
from pages.ui.typed import escape
from tfm_core.inspect.compare.curves import AXES, METRICS, AxisName, caveats, track
from tfm_core.plots import comparison as plots
from tfm_core.plots.comparison import CurvePanel, RunLine
from tfm_core.runs.curves import Curves

_HEIGHT, _PER_PANEL = 62, 126  # pixels: both panels stand in the first screen
_MAX_LISTED = 3


def part(shown: Sequence[Drawn], found: Sequence[seeds.Group], had_bands: bool) -> None:
    """Draw the chosen quantities of all runs, with what to know when they are compared.

    had_bands: whether the rest of the page shows the seeds of a configuration as one. A press here
    draws nothing else anew.
    """
    metrics, axis, window, is_log_x, is_log_y, has_bands = _controls(
        has_seeds=seeds.has_seeds(found)
    )
    if seeds.has_bands(found) != had_bands:
        state.draw_anew()  # for the table shows the looks of the lines
    if not metrics:
        st.info(_("Choose what to draw above."), icon=":material/info:")
        return
    for sentence in caveats([one.run.experiment for one in shown], metrics):
        st.caption(f":material/warning: {_(sentence)}")
    curves = {one.run.id: runs_access.curves(one.run) for one in shown}
    key = (metrics, axis, window, is_log_x, is_log_y, has_bands)
    marks = tuple(_mark(one, curves[one.run.id]) for one in shown)
    figure, notes = _figure(key, marks, language(), list(shown), curves, found)
    if figure is None and notes:
        st.info(" ".join(notes), icon=":material/info:")
    elif figure is None:
        st.info(_("The first measurement is on its way."), icon=":material/hourglass_empty:")
    else:
        drawn = ", ".join(_(METRICS[metric].label) for metric in metrics)
        words = _("Curves of {n} runs: {drawn}", n=len(shown), drawn=drawn)
        live_figure(figure, key="compare-curves", name=words)
        if notes:
            st.caption(" ".join(notes))


def _controls(*, has_seeds: bool) -> tuple[tuple[str, ...], AxisName, int, bool, bool, bool]:
    problems = [view_link.receive(one) for one in (METRIC, AXIS, WINDOW, LOG_X, LOG_Y, BANDS)]
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
            width=400,
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
            _("Smoothing of training"),
            [int(option) for option in WINDOW.options],
            key=WINDOW.key,
            format_func=lambda n: _("off") if n == 1 else _("mean of {n}", n=n),
            help=_(
                "The thick line averages this many past values; thin lines are the raw values. "
                "Validation is never smoothed."
            ),
            persist_state="session",
            width=200,
        )
        is_log_x = st.toggle(_("Log across"), key=LOG_X.key, persist_state="session")
        is_log_y = st.toggle(
            _("Log up"),
            key=LOG_Y.key,
            persist_state="session",
            help=_("Of all that is no share."),
        )
        has_bands = bool(st.session_state[BANDS.key])
        if has_seeds:
            has_bands = st.toggle(
                _("Seeds as a band"),
                key=BANDS.key,
                persist_state="session",
                help=_(
                    "Runs that differ only in their seed are one line, their mean, with a band "
                    "of one standard deviation. Thin lines are the single runs."
                ),
            )
    for sentence in problems:
        view_link.warn(sentence)
    chosen: AxisName = cast(AxisName, axis if axis in AXES else AXIS.first)
    view_link.say(METRIC, tuple(metrics))
    view_link.say(AXIS, chosen)
    view_link.say(WINDOW, window)
    for flag, is_on in ((LOG_X, is_log_x), (LOG_Y, is_log_y), (BANDS, has_bands)):
        view_link.say(flag, is_on)
    is_banded = has_seeds and has_bands
    return tuple(metrics), chosen, int(window), is_log_x, is_log_y, is_banded


def _mark(one: Drawn, curves: Curves) -> tuple[object, ...]:
    """Return what changes exactly when the line of a run would."""
    sizes = [(len(series), series.last("step")) for series in (curves.steps, curves.validation)]
    return (one.run.id, one.name, one.slot, *sizes, bool(curves.started), bool(curves.finished))


@st.cache_resource(show_spinner=False, max_entries=32)
def _figure(
    key: tuple[object, ...],
    marks: tuple[object, ...],
    spoken: str,
    _shown: Sequence[Drawn],
    _curves: dict[str, Curves],
    _found: Sequence[seeds.Group],
) -> tuple[go.Figure | None, list[str]]:
    metrics, axis, window, is_log_x, is_log_y, has_bands = key
    assert isinstance(metrics, tuple)
    assert isinstance(window, int)
    along = cast(AxisName, axis)
    is_banded = bool(has_bands) and along in seeds.WITH_BANDS
    summed = {
        one.run.id for group in _found if len(group.members) > 1 for one in group.members
    } if is_banded else set()  # fmt: skip
    panels, lost, reckoned, longest = [], dict[str, None](), dict[str, None](), 0
    for metric in metrics:
        lines = []
        for one in _shown:
            found = track(_curves[one.run.id], one.run.experiment, metric, along)
            if found is None and len(_curves[one.run.id].steps):
                lost[one.name] = None
            if found is None or not len(found.values):
                continue
            is_faint = one.run.id in summed
            lines.append(RunLine(one.name, one.slot, found.x, found.values, is_faint=is_faint))
            longest = max(longest, len(found.values))
            if found.is_reckoned:
                reckoned[one.name] = None
        facts = METRICS[metric]
        panels.append(
            CurvePanel(
                _(facts.label),
                lines,
                seeds.bands(_found, metric, along, window) if is_banded else (),
                is_share=facts.is_share,
                is_noisy=facts.series == "steps",
            )
        )
    notes = _notes(list(lost), list(reckoned), longest, plots.most_points(panels, window))
    if has_bands and not is_banded:
        words = _("Runs are measured at different times, so each seed has its own line.")
        notes.append(words)
    if not any(panel.lines for panel in panels):
        return None, notes
    figure = plots.comparison(
        panels,
        _(AXES[along]),
        window=window,
        is_log_x=bool(is_log_x),
        is_log_y=bool(is_log_y),
        height=_HEIGHT + _PER_PANEL * len(panels),
    )
    figure.update_layout(uirevision=f"{metrics} {axis} {is_log_x} {is_log_y}")
    return figure, notes


def _notes(lost: Sequence[str], reckoned: Sequence[str], longest: int, most: int) -> list[str]:
    """Return what a reader must know of the figure: what is missing, reckoned or left out."""
    notes = []
    if longest > most:
        words = _(
            "Each line shows at most {most} points, with the lowest and highest of each "
            "stretch, so no spike is lost."
        )
        notes.append(words.format(most=most))
    if reckoned:
        words = _("The seconds of {names} were not recorded and are estimated from its speed.")
        notes.append(words.format(names=_listed(reckoned)))
    if lost:
        words = _("Not shown on this axis, because it was not recorded: {names}.")
        notes.append(words.format(names=_listed(lost)))
    return notes


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"“{escape(name)}”" for name in names[:_MAX_LISTED])
    return listed + (", …" if len(names) > _MAX_LISTED else "")
