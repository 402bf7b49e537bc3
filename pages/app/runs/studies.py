"""The arms of a study: find their runs, start them, show their curves, and a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.runs import comparison, run_actions, run_time, run_words, runs_access, shown_run
from pages.app.runs.run_actions import Start
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.choices.config import Experiment
from tfm_core.choices.variants.positions import Style
from tfm_core.inspect.compare.curves import METRICS, track
from tfm_core.inspect.compare.spread import band
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.runs.run import Run
from tfm_core.studies.study import Arm, Study, StudyRuns, missing, runs_of

_HEIGHT, _PER_PANEL = 70, 150  # pixels


def at_hand(chosen: Study, *, with_lessons: bool = False) -> StudyRuns:
    """Return the runs of a study that the visitor can see. with_lessons: recorded ones, too."""
    return runs_of(chosen, visitors.with_lessons() if with_lessons else visitors.at_hand())


def buttons(
    chosen: Study,
    trained: StudyRuns,
    *,
    stays: bool = False,
    key: str = "experiment",
    is_first: bool = True,
    own: bool = False,
) -> None:
    """Draw the button that trains what is missing, and that for more seeds.

    stays: more seeds are watched here, not on the page that compares. is_first: it stands out.
    own: what is recorded is missing, too.
    """
    start_button(chosen, missing(chosen, trained, own=own), key=key, is_first=is_first)
    comparison.seed_button(
        lambda: [_start(chosen, arm, chosen.experiment(arm)) for arm in chosen.arms],
        key=key,
        stays=stays,
    )


def start_button(
    chosen: Study, wanted: Mapping[str, Experiment], *, key: str, is_first: bool = True
) -> None:
    """Draw the button that queues runs of arms, by their names, in one group; none for no run."""
    n, time = len(wanted), run_time.words(run_time.in_sequence(wanted.values()))
    label = ngettext("Train {n} run ({time})", "Train {n} runs ({time})", n, n=n, time=time)
    kind: Literal["primary", "secondary"] = "primary" if is_first else "secondary"
    if not n or not st.button(label, type=kind, icon=":material/play_arrow:", key=f"{key}-start"):
        return
    starts = [_start(chosen, chosen.arm(name), each) for name, each in wanted.items()]
    try:
        comparison.start_all(starts, group=str(_(chosen.title)))
    except (ValueError, OSError) as error:
        show.problem(error)
    else:
        st.rerun()


def _start(chosen: Study, arm: Arm, experiment: Experiment) -> Start:
    name = f"{_(chosen.title)}: {_(arm.label)}"
    return Start(experiment, state.device(), name, None, state.threads())


def _cure(run: Run, cure: Arm) -> None:
    run_actions.cure(run, cure)


def cure_button(
    run: Run,
    cure: Arm,
    *,
    key: str,
    on_click: Callable[[Run, Arm], None] = _cure,
    is_first: bool = False,
    words: str = "",
) -> None:
    """Draw the button of an arm that goes on from a run. words: what it does."""
    st.button(
        escape(_(cure.label)),
        icon=":material/healing:",
        type="primary" if is_first else "secondary",
        key=key,
        on_click=on_click,
        args=(run, cure),
        **visitors.allowed(words),
    )


def curves(
    chosen: Study, trained: StudyRuns, *, height: int = 0, window: int = 1
) -> go.Figure | None:
    """Return the curves of all runs, with a band for several seeds; None where there are none.

    height: in pixels, 0 for the usual one. window: steps that a thick line averages.
    """
    panels = [_panel(chosen, trained, metric) for metric in chosen.metrics]
    if not any(panel.lines for panel in panels):
        if trained.runs:
            st.info(_("Waiting for the first measurement."), icon=":material/hourglass_empty:")
        return None
    height = height or _HEIGHT + _PER_PANEL * len(panels)
    figure = plots.comparison(panels, _("step"), window=window, height=height)
    figure.update_layout(uirevision=chosen.name)
    return figure


def curves_name(chosen: Study) -> str:
    """Return what the figure of all runs is called where it is not seen."""
    labels = ", ".join(_(METRICS[metric].label) for metric in chosen.metrics)
    return _("Curves of “{title}”: {drawn}", title=_(chosen.title), drawn=labels)


def _panel(chosen: Study, trained: StudyRuns, metric: str) -> CurvePanel:
    facts, lines = METRICS[metric], []
    is_noisy = facts.series == "steps"
    for slot, arm in enumerate(chosen.arms):
        label, runs = _(arm.label), trained.by_arm[arm.name]
        tracks = [
            curve
            for run in runs.values()
            if (curve := track(runs_access.curves(run), run.experiment, metric, "step")) is not None
            and len(curve.values)
        ]
        lines += [
            RunLine(label, slot, curve.x, curve.values, is_faint=len(tracks) > 1)
            for curve in tracks
        ]
        if len(tracks) > 1:
            seeds = [(curve.x, curve.values) for curve in tracks]
            lines += mean_band(label, slot, seeds, len(runs))
    return CurvePanel(_(facts.label), lines, is_share=facts.is_share, is_noisy=is_noisy)


def mean_band(
    name: str, slot: int, curves: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], n_runs: int
) -> list[RunLine]:
    """Return the mean of the curves of seeds with its band, where they have steps in common."""
    found = band(curves)
    if not len(found.steps):
        return []
    words = comparison.mean_label(name, found.n_curves, n_runs)
    return [RunLine(words, slot, found.steps, found.mean, found.low, found.high)]


def learning_curves(
    chosen: Study,
    trained: StudyRuns,
    column: str,
    title: str,
    caption: str,
    *,
    key: str,
    styles: Mapping[str, Style] | None = None,
) -> dict[str, float]:
    """Draw a validation score of each arm's run; return the last ones by label.

    column: of the curves. styles: as ``race`` has them.
    """
    from tfm_core.plots.model.positions import race  # brings pandas, and Home compares nothing

    series = {}
    for name, run in trained.shown.items():
        validation = runs_access.curves(run).validation
        if len(validation):
            label = _(chosen.arm(name).label)
            series[name] = (label, validation["step"], validation[column])
    if series:
        show.figure(race(series, "step", title, styles=styles), caption, key=key)
    else:
        st.info(_("Waiting for the first measurement."), icon=":material/hourglass_empty:")
    return {label: float(shares[-1]) for label, _steps, shares in series.values()}


def lines(chosen: Study, trained: StudyRuns, *, stopped: Mapping[str, Run] | None = None) -> None:
    """Draw a line for each arm's run: its state, and a button to watch it.

    stopped: runs that ended early, by arm, drawn too; by default those of ``trained``.
    """
    stopped = trained.stopped if stopped is None else stopped
    there = trained.shown
    if not there and not stopped:
        st.info(_("No runs yet."), icon=":material/play_circle:")
    for arm in chosen.arms:
        for run in (there.get(arm.name), stopped.get(arm.name)):
            if run is None:
                continue
            status, name = run.status, _(arm.label)
            badge = shown_run.origin_badge(run) or run_words.badge(status, run.outcome)
            so_far = f" {run_words.progress(status)}" if status.is_active else ""
            with st.container(
                horizontal=True, gap="small", vertical_alignment="center", width="content"
            ):
                st.markdown(f"**{name}** {badge}{so_far}", width="content")
                if st.button(
                    f":gray[{_('Watch')}]",
                    icon=":material/visibility:",
                    type="tertiary",
                    key=f"experiment-watch-{arm.name}-{run.id}",
                    help=_("Open “{name}” on Train.", name=name),
                ):
                    run_actions.watch(run)
                if status.reason:
                    st.caption(escape(_(status.reason)), width="content")
