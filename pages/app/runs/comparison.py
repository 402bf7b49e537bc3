"""Runs that are trained to be compared: seeds of a configuration, and the arms of a study.

They enter the queue like every other run, as many as the limits allow, in one group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.navigation import page_table
from pages.app.runs import run_actions, run_time, run_words, runs_access, shown_run
from pages.app.runs.run_actions import Start
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.choices.config import Experiment
from tfm_core.choices.variants.positions import Style
from tfm_core.inspect import differences
from tfm_core.inspect.conclusions import curve_band
from tfm_core.inspect.curves import METRICS, track
from tfm_core.inspect.differences import MAX_SEEDS, MIN_SEEDS
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.runs.labels import MAX_GROUP
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import check_memory
from tfm_core.runs.run import Run
from tfm_core.studies.study import Arm, Study, StudyRuns, missing, runs_of

RUNS_QUERY = "runs"
"""What the address of the page that compares calls the runs."""

TICK = 2.0
"""Seconds between two looks at runs that train."""


def runs_query(runs: Iterable[Run]) -> dict[str, str]:
    """Return the query with which the page ``compare`` opens on these runs."""
    return {RUNS_QUERY: ",".join(dict.fromkeys(run.id for run in runs))}


def mean_label(name: str, n_drawn: int, n_runs: int) -> str:
    """Return the label of the mean curve of several seeds.

    n_drawn: seeds that have a curve. n_runs: seeds that were asked for.
    """
    if n_drawn < 2:
        return _("{name}: {n} of {n_runs} seeds", name=name, n=n_drawn, n_runs=n_runs)
    if n_drawn < n_runs:
        return _("{name}: mean ± sd of {n} of {n_runs} seeds", name=name, n=n_drawn, n_runs=n_runs)
    return _("{name}: mean ± sd of {n} seeds", name=name, n=n_drawn)


def is_live(runs: Iterable[Run]) -> bool:
    return any(run.status.is_active for run in runs)


def follow(runs: Collection[Run], draw: Callable[[bool], None]) -> None:
    """Draw runs, again and again while they train. draw: gets whether they did when it began."""
    state.poll(lambda: is_live(runs), draw, every=TICK)


def progress(runs: Iterable[Run]) -> None:
    """Show how many runs are still to come."""
    states = [run.status for run in runs]
    n_left = sum(status.is_active for status in states)
    n_waiting = sum(status.state == "queued" for status in states)
    with st.container():
        if n_waiting:
            waiting = ngettext(
                "{n} run is waiting.", "{n} runs are waiting.", n_waiting, n=n_waiting
            )
            st.caption(f":material/hourglass_empty: {waiting}")
        elif n_left:
            training = ngettext("{n} run is training.", "{n} runs are training.", n_left, n=n_left)
            st.caption(f":material/hourglass_empty: {training}")
        else:
            st.caption(":material/flag: " + _("All {n} runs have finished.", n=len(states)))


SEEDS = "seeds-number"
"""Where the session keeps how many seeds one press asks for."""


def start_like(run: Run) -> Start:
    """Return a start with the settings of a run; for a recorded run, on the visitor's device."""
    meta = run.meta
    device = state.device() if meta.recorded else meta.device
    return Start(run.experiment, device, meta.name, meta.preset, meta.threads)


def start_all(starts: Sequence[Start], *, group: str | None = None) -> list[Run]:
    """Queue as many of the runs as the limits allow, in order; return them.

    A notice says how many are queued. Raises ValueError and OSError if none could start.
    """
    begun: list[Run] = []
    in_hand = run_actions.n_active_allowed()
    limits = runs_access.queue().limits
    n_waiting = len(waiting_line.ids(runs_access.store().root))
    # a full queue refuses the first one, with a message
    most = max(1, min(limits.max_per_session - in_hand, limits.max_queued - n_waiting))
    for start in starts:
        runs_access.queue().limits.check(start.experiment, n_queued=0)
        check_memory(start.experiment, start.device)
    for start in starts[:most]:
        try:
            begun.append(run_actions.enqueue(start, group=group))
        except (ValueError, OSError) as error:
            if not begun:
                raise
            queued = _("{begun} of {n} runs queued.", begun=len(begun), n=len(starts))
            state.notify(f"{queued} {_(error)}")
            return begun
    n = len(starts)
    if len(begun) == n:
        state.notify(ngettext("{n} run queued.", "{n} runs queued.", n, n=n), passes=True)
    else:
        state.notify(
            _(
                "Queued {begun} of {n} runs, the most that this server allows.",
                begun=len(begun),
                n=n,
            )
        )
    return begun


def n_seeds() -> int:
    return min(
        max(int(st.session_state.get(SEEDS) or differences.USUAL_SEEDS), differences.MIN_SEEDS),
        differences.MAX_SEEDS,
    )


def train_seeds(
    starts: Sequence[Start],
    *,
    stays: bool = False,
    on_refused: Callable[[BaseException], None] | None = None,
) -> None:
    """Train the missing seeds of each start, and open the comparison of all, unless one stays.

    The visitor's existing runs join the group if they have none. on_refused: reports why nothing
    could start; by default a notice at the top of the page does.
    """
    try:
        run_ids = _queued_seeds(starts)
    except (ValueError, OSError) as error:
        if on_refused is not None:
            on_refused(error)
            return
        state.notify(_(error))
        st.rerun()
    if stays:
        st.rerun()
    open_comparison(run_ids)


def _queued_seeds(starts: Sequence[Start]) -> list[str]:
    """Queue the missing seeds of each start; return all. Raises ValueError and OSError if none."""
    listed = visitors.listed()
    n = n_seeds()
    plans = differences.seed_plans([start.experiment for start in starts], listed, n)
    there = [run for runs, _missing in plans for run in runs.values()]
    missing = [
        replace(start, experiment=experiment)
        for start, (_runs, experiments) in zip(starts, plans, strict=True)
        for experiment in experiments
    ]
    begun: list[Run] = []
    if missing:
        group = next((run.labels.group for run in there if run.labels.group), None)
        group = group or _new_group(starts, n, listed)
        begun = start_all(missing, group=group)
        own = [
            run.id
            for run in there
            if not run.meta.recorded and not visitors.watches(run) and run.labels.group is None
        ]
        run_actions.join_group(own, group)
    else:
        state.notify(_("All {n} seeds exist.", n=n))
    return [run.id for run in (*there, *begun)]


def _new_group(starts: Sequence[Start], n: int, listed: Iterable[Run]) -> str:
    """Return a new name for a group."""
    first = starts[0]
    name = first.name or _(first.experiment.task.facts.label)
    existing = {run.labels.group for run in listed}

    def title(name: str) -> str:
        if len(starts) == 1:
            return ngettext("{name}: {n} seed", "{name}: {n} seeds", n, name=name, n=n)
        return ngettext(
            "{name} and {m} more: {n} seed",
            "{name} and {m} more: {n} seeds",
            n,
            name=name,
            m=len(starts) - 1,
            n=n,
        )

    number, suffix = 1, ""
    while True:
        room = MAX_GROUP - len(title("")) - len(suffix)
        group = f"{title(name[:room])}{suffix}"
        if group not in existing:
            return group
        number += 1
        suffix = f" ({number})"


def open_comparison(run_ids: Sequence[str]) -> None:
    st.switch_page(page_table.path_of("compare"), query_params={RUNS_QUERY: ",".join(run_ids)})


def seed_button(
    what: Callable[[], Sequence[Start]],
    *,
    key: str,
    disabled: bool = False,
    on_refused: Callable[[BaseException], None] | None = None,
    stays: bool = False,
) -> None:
    """Draw a button that trains missing seeds, and the number of seeds beside it.

    what: returns the configurations when it is pressed. on_refused, stays: see ``train_seeds``.
    """
    n = n_seeds()
    words = _("Trains missing seeds.") if stays else _("Trains missing seeds and compares all.")
    with st.container(horizontal=True, gap=None, width="content", key=f"seeds-{key}"):
        pressed = st.button(
            ngettext("{n} seed", "{n} seeds", n, n=n),
            icon=":material/casino:",
            key=f"{key}-seeds",
            **visitors.allowed(words, is_off=disabled),
        )
        with st.popover(_("How many seeds"), type="tertiary", key=f"{key}-seeds-how-many"):
            number = f"{key}-seeds-number"

            def take() -> None:
                if isinstance(chosen := st.session_state.get(number), int):
                    st.session_state[SEEDS] = chosen

            st.number_input(
                _("Seeds"),
                MIN_SEEDS,
                MAX_SEEDS,
                value=n,
                key=number,
                help=_("Including existing runs."),
                on_change=take,
            )
    starts = what() if pressed else []
    if starts:
        train_seeds(starts, stays=stays, on_refused=on_refused)


_HEIGHT, _PER_PANEL = 70, 150  # pixels


def study_runs(chosen: Study, *, with_lessons: bool = False) -> StudyRuns:
    """Return the runs of a study that the visitor can see. with_lessons: recorded ones, too."""
    return runs_of(chosen, visitors.with_lessons() if with_lessons else visitors.available_runs())


def study_buttons(
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
    seed_button(
        lambda: [_start(chosen, arm, chosen.experiment(arm)) for arm in chosen.arms],
        key=key,
        stays=stays,
    )


def start_button(
    chosen: Study, wanted: Mapping[str, Experiment], *, key: str, is_first: bool = True
) -> None:
    """Draw the button that queues runs of arms, by their names, in one group; none for no run."""
    n, time = len(wanted), run_time.forecast_text(run_time.in_sequence(wanted.values()))
    label = ngettext("Train {n} run ({time})", "Train {n} runs ({time})", n, n=n, time=time)
    kind: Literal["primary", "secondary"] = "primary" if is_first else "secondary"
    if not n or not st.button(label, type=kind, icon=":material/play_arrow:", key=f"{key}-start"):
        return
    starts = [_start(chosen, chosen.arm(name), each) for name, each in wanted.items()]
    try:
        start_all(starts, group=str(_(chosen.title)))
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


def study_curves(
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


def study_curves_name(chosen: Study) -> str:
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
    found = curve_band(curves)
    if not len(found.steps):
        return []
    words = mean_label(name, found.n_curves, n_runs)
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


def arm_lines(
    chosen: Study, trained: StudyRuns, *, stopped: Mapping[str, Run] | None = None
) -> None:
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
