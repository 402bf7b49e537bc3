"""Train every kind of positions on one task and compare the curves."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.navigation import page_table
from pages.ui.runs import comparison, run_actions, run_words, runs_access, shown_run
from pages.ui.typed import escape
from tfm_core.config import FAMILIES, ConfigError, Experiment
from tfm_core.inspect.compare.conclusions import beyond, most_right
from tfm_core.inspect.positions import race as position_race
from tfm_core.inspect.positions.race import Extrapolation, Race
from tfm_core.plots.model import positions as plots
from tfm_core.runs.run import Run
from tfm_core.variants.positions import POSITIONS

FIRST_STEPS = 600
_STEPS, _RACE = "positions-steps", "positions-race"


def view() -> None:
    _press()
    races = position_race.races(visitors.with_lessons())
    if not races:
        st.info(_("Train all kinds, or two runs that differ in positions."), icon=":material/info:")
        return
    race = comparison.choose_group(races, _name, key=_RACE)
    if len(races) == 1:
        st.markdown(f"**{_name(race)}**")
    shown_run.recorded_comparison_note(race.values())
    is_live = comparison.is_live(race.values())
    st.fragment(_draw, run_every=comparison.TICK if is_live else None)(race, is_live)


def _press() -> None:
    experiment, words = _experiment()
    if experiment is None:
        show.problem(words)
        return
    st.markdown(words)
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    with left:
        steps = st.slider(
            _("Steps of each run"),
            100,
            3000,
            min(FIRST_STEPS, max(100, experiment.training.steps // 100 * 100)),
            step=100,
            key=f"{_STEPS}-{experiment.task.name}",
            help=_("One seed, the same batches."),
        )
    with right:
        if st.button(
            _("Train all kinds"),
            type="primary",
            icon=":material/play_arrow:",
            key="positions-train",
            width="stretch",
        ):
            _start(experiment, steps)


def _experiment() -> tuple[Experiment | None, str]:
    """Return what to train, from the current run or else the draft, and a sentence about it."""
    run = shown_run.current_run()
    if run is not None:
        name = escape(run.meta.name)
        return run.experiment, _("Task and sizes of **{name}**.", name=name)
    try:
        experiment = Experiment.parse(state.draft())
    except ConfigError as error:
        return None, _("The configuration on the Train page is not valid: {why}", why=_(error))
    task = _(experiment.task.facts.label)
    return experiment, _("Task and sizes of the Train page: **{task}**.", task=task)


def _start(experiment: Experiment, steps: int) -> None:
    """Queue one run a kind; shows why one is refused; those queued before it stay."""
    try:
        racers = position_race.racers(experiment, steps=steps)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    for name, racer in reversed(racers.items()):  # the newest stands first in every list
        label = _(
            "{task}, positions: {kind}",
            task=_(experiment.task.facts.label),
            kind=_(POSITIONS[name].label),
        )
        if run_actions.start(racer, name=label) is None:
            return
    st.session_state.pop(_RACE, None)
    st.rerun()


def _draw(race: Race, was_live: bool) -> None:
    if was_live and not comparison.is_live(race.values()):
        state.draw_anew()  # once: it then no longer polls
    comparison.progress(race.values())
    left, right = st.columns(2)
    with left:
        _curves(race)
    with right:
        _beyond(race)
    columns = st.columns(len(race))
    for column, (name, run) in zip(columns, race.items(), strict=True):
        with column:
            st.markdown(f"**{_(POSITIONS[name].label)}**")
            status = run.status
            st.markdown(run_words.badge(status))
            st.caption(run_words.progress(status))
            st.page_link(
                page_table.path_of("train"),
                label=_("Watch"),
                icon=":material/show_chart:",
                query_params={"run": run.id, **run_actions.way_back()},
            )


def _curves(race: Race) -> None:
    column, title = _measure(next(iter(race.values())).experiment)
    series = {}
    for name, run in race.items():
        validation = runs_access.curves(run).validation
        if len(validation):
            label = _(POSITIONS[name].label)
            series[name] = (label, validation["step"], validation[column])
    if not series:
        st.info(_("Waiting for the first measurement."), icon=":material/hourglass_empty:")
        return
    show.live_figure(
        plots.race(series, _("step"), title),
        _("Which kind learns the task, and how fast?"),
        key="positions-race-curves",
    )
    last = {label: float(shares[-1]) for label, _steps, shares in series.values()}
    words = most_right(last, getattr(next(iter(race.values())).experiment.task, "n_validation", 0))
    if words is not None:
        st.markdown(_(words))


def _measure(experiment: Experiment) -> tuple[str, str]:
    """Return the column of the score for a task, and its axis title."""
    answer = experiment.task.facts.answer
    if answer in ("sequence", "blanks"):
        return "sequence_accuracy", _("whole sequences right")
    if answer == "text":
        return "accuracy", _("next tokens right")
    is_pictured = experiment.task.picture_shape is not None
    return "accuracy", _("pictures right") if is_pictured else _("labels right")


def _beyond(race: Race) -> None:
    why = position_race.can_extrapolate(next(iter(race.values())).experiment)
    if why is not None:
        st.info(_(why), icon=":material/info:")
        return
    lines: dict[str, Extrapolation] = {}
    for name, run in race.items():
        if run.has_checkpoint and not run.status.is_active:
            try:
                with st.spinner(_("Measuring longer sequences …")):
                    lines[name] = _measured(run.id, run.checkpoint_step or 0, run)
            except ValueError as error:
                show.problem(error)
    if not lines:
        st.info(
            _("Longer sequences are measured once a run finishes."),
            icon=":material/hourglass_empty:",
        )
        return
    series = {
        name: (_(POSITIONS[name].label), table["length"].to_numpy(), table["tokens"].to_numpy())
        for name, (table, _trained, _why) in lines.items()
    }
    table, trained, _why = next(iter(lines.values()))
    show.live_figure(
        plots.race(series, _("source length (tokens)"), _("tokens right"), trained=trained),
        paragraph("positions/beyond", n=position_race.PER_LENGTH),
        key="positions-race-beyond",
    )
    at = {
        label: float(tokens[-1])
        for label, _lengths, tokens in series.values()
        if np.isfinite(tokens[-1])
    }
    longest = int(table["length"].iloc[-1])
    words = beyond(at, position_race.PER_LENGTH, longest, trained)
    if words is not None:
        st.markdown(_(words))


@st.cache_data(show_spinner=False, max_entries=64)
def _measured(run_id: str, step: int, _run: Run) -> Extrapolation:
    return position_race.extrapolate(_run)


def _name(race: Race) -> str:
    run = next(iter(race.values()))
    experiment = run.experiment
    return _(
        "{task}, {family}, {steps} steps, seed {seed}: {n} kinds, {when}",
        task=_(experiment.task.facts.label),
        family=FAMILIES[experiment.model.family].label,
        steps=f"{experiment.training.steps:,}",
        seed=experiment.seed,
        n=len(race),
        when=show.ago(run.meta.created),
    )
