"""The choice of a sweep, its leaderboard and Optuna's figures; a fragment polls while it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.address.parameters import Text
from pages.app.navigation import page_table, ticks
from pages.app.runs import comparison, run_actions, runs_access
from pages.app.typed import escape
from pages.compare.sweeps import actions, form
from pages.i18n import N_, _, language, ngettext
from tfm_core.plots.training import sweeps as plots
from tfm_core.runs.labels import MAX_NAME
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sweeps import space
from tfm_core.sweeps.plan import Plan, SweepDamaged
from tfm_core.sweeps.store import Sweep, SweepNotFound, Trial, read_trials

SCOPE, _PICK = "sweeps", "sweeps-pick"
NEW = ""
_HEIGHT = 300
STATES = {
    "running": N_("training"),
    "complete": N_("complete"),
    "diverged": N_("diverged"),
    "failed": N_("no result"),
}


@dataclass(frozen=True)
class ShownSweep:
    """The id of the shown sweep; empty for a new one."""

    sweep: str = view.held(Text("", first=NEW, most=64))


def shown() -> Sweep | None:
    """Draw the choice; return the sweep to show, or None to create one."""
    sweep_id = view.ask(ShownSweep, SCOPE).sweep
    listed = actions.listed()
    names = {sweep.id: _name(sweep) for sweep in listed}
    if sweep_id and sweep_id not in names:
        try:
            names[sweep_id] = _name(actions.sweep_store().get(sweep_id))
        except SweepNotFound as error:
            view.warn(_(error))
            open_sweep(NEW)
            sweep_id = view.ask(ShownSweep, SCOPE).sweep
    if names:
        st.session_state[_PICK] = sweep_id
        st.selectbox(
            _("Sweep"),
            [NEW, *names],
            format_func=lambda name: names.get(name, _("New sweep")),
            key=_PICK,
            label_visibility="collapsed",
            on_change=lambda: open_sweep(str(st.session_state[_PICK])),
        )
    return actions.sweep_store().get(sweep_id) if sweep_id else None


def open_sweep(sweep_id: str) -> None:
    """Show a sweep from the next rerun on; an empty id creates one."""
    view.put(SCOPE, sweep=sweep_id)


def undo() -> None:
    for sweep in actions.deleted()[:1]:
        name = escape(_title(sweep))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(_("Deleted *{name}*.", name=name), width="content")
            if st.button(
                _("Undo: {name}", name=name),
                key=f"sweeps-undo-{sweep.id}",
                icon=":material/undo:",
                type="tertiary",
            ) and actions.undelete(sweep):
                open_sweep(sweep.id)
                st.rerun()


def deletion(sweep: Sweep) -> None:
    with st.popover(_("Delete sweep …"), icon=":material/delete:"):
        st.caption(_("Its runs stay. You can undo for a day."))
        if st.button(_("Delete sweep"), key="sweeps-delete") and actions.delete(sweep):
            open_sweep(NEW)
            st.rerun()


def _title(sweep: Sweep) -> str:
    try:
        return sweep.plan().name
    except SweepDamaged:
        return sweep.id[:20]


def _name(sweep: Sweep) -> str:
    try:
        plan = sweep.plan()
    except SweepDamaged:
        return _("{id} (damaged)", id=sweep.id[:20])
    return f"{plan.name} · {_(plan.base.task.facts.label)} · {_(actions.STATES[plan.state])}"


def sweep_view(sweep: Sweep) -> None:
    try:
        plan = sweep.plan()
        trials = _trials(sweep)
    except (SweepDamaged, OSError) as error:
        show.problem(error)
        deletion(sweep)
        return
    if plan.state == "finished":
        ticks.mark()
    is_live = plan.state in ("active", "stopping")
    st.fragment(_live, run_every=comparison.TICK if is_live else None)(sweep, plan.state)
    if actions.may_change(plan):
        with st.expander(_("Change ranges or add trials"), icon=":material/tune:"):
            _change(sweep, plan, trials)
        deletion(sweep)


def _live(sweep: Sweep, drawn_as: str) -> None:
    try:
        plan = sweep.plan()
        trials = _trials(sweep)
    except (SweepDamaged, OSError) as error:
        show.problem(error)
        return
    if plan.state != drawn_as:
        state.rerun()  # once: the buttons change, and it may stop polling
    _head(sweep, plan, trials)
    mark = (str(sweep.folder), *_changed(sweep), hash(plan.space), language())
    figures = _figures(mark, plan, tuple(trials))
    left, right = st.columns([11, 9], gap="medium")
    with left:
        table(plan, trials)
    with right:
        _draw(
            figures,
            "history",
            _("{figure} of each trial, and the best so far.", figure=_(plan.looks_for.label)),
            _("Waiting for the first result."),
        )
    further = (
        ("slice", _("Each dot is a trial.")),
        ("importance", _("Importance of each setting (PED-ANOVA).")),
        (
            "contour",
            _("The two most important settings, interpolated.")
            if "importance" in figures
            else _("Two settings, interpolated."),
        ),
    )
    n_finished = plots.n_finished(plan, trials)
    if n_finished:
        st.caption(_("From {n} finished of {all} trials.", n=n_finished, all=len(trials)))
    drawn = [(name, caption) for name, caption in further if name in figures]
    for column, (name, caption) in zip(st.columns(len(drawn) or 1), drawn, strict=False):
        with column:
            _draw(figures, name, caption, "")
    thin = plots.thin_values(plan, trials) if n_finished >= plots.ENOUGH else []
    if thin:
        values = "; ".join(
            _(
                "{setting} {value}: {n} finished",
                setting=_(setting),
                value=_(space.shown(value)),
                n=n,
            )
            for setting, value, n in thin
        )
        note = _(
            "Importance needs {most} finished trials per value. Too few: {values}.",
            most=plots.MIN_FINISHED,
            values=values,
        )
        st.caption(escape(note))
    elif "importance" not in figures:
        st.caption(_("Importance appears after {n} finished trials.", n=plots.ENOUGH))


def _head(sweep: Sweep, plan: Plan, trials: Sequence[Trial]) -> None:
    spent = sum(trial.run_id is not None for trial in trials)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header(escape(plan.name), anchor=False, width="content")
        st.markdown(
            _BADGES[plan.state].format(state=_(actions.STATES[plan.state])), width="content"
        )
        if actions.may_change(plan):
            _buttons(sweep, plan)  # not at the right edge, above the table's tools
        st.caption(_progress(plan, spent), width="stretch")
    error = runs_access.sweeps().error_of(sweep.id)
    with st.container():
        if error is not None and plan.state in ("active", "stopping"):
            st.warning(escape(_(error)), icon=":material/hourglass_empty:")
        elif plan.reason:
            st.caption(f":material/flag: {escape(_(plan.reason))}")


_BADGES = {
    "active": ":blue-badge[:material/autorenew: {state}]",
    "stopping": ":orange-badge[:material/stop: {state}]",
    "stopped": ":gray-badge[:material/stop: {state}]",
    "finished": ":green-badge[:material/check: {state}]",
}


def _progress(plan: Plan, spent: int) -> str:
    runs, minutes = ngettext("{n} run", "{n} runs", spent, n=spent), ""
    if plan.max_runs is not None:
        runs = _("{n} of up to {most} runs", n=spent, most=plan.max_runs)
    if plan.max_minutes is not None:
        minutes = _("up to {minutes:g} min", minutes=plan.max_minutes)
    return show.joined(runs, minutes)


def _buttons(sweep: Sweep, plan: Plan) -> None:
    if plan.state == "active":
        st.button(
            _("Stop sweep"),
            icon=":material/stop:",
            key="sweeps-stop",
            on_click=actions.halt,
            args=(sweep,),
            help=_("Its runs stop and resume with it."),
        )
    elif plan.state == "stopped":
        st.button(
            _("Resume"),
            icon=":material/play_arrow:",
            type="primary",
            key="sweeps-go-on",
            on_click=actions.resume,
            args=(sweep,),
        )


def _change(sweep: Sweep, plan: Plan, trials: Sequence[Trial]) -> None:
    st.caption(_("Finished trials in the new ranges count."))
    key = f"change-{sweep.id}-{hash(plan.space)}-{plan.max_runs}"
    problem: Exception | None = None
    changed = plan
    try:
        changed = form.plan(plan, key)
        changed.check()
    except ValueError as error:
        problem = error
    name = st.text_input(_("Name"), plan.name, max_chars=MAX_NAME, key=f"{key}-name")
    if problem is not None:
        st.markdown(f":red[:material/error: **{escape(_(problem))}**]")
    if st.button(
        _("Apply changes"),
        icon=":material/check:",
        disabled=problem is not None,
        key="sweeps-apply",
    ):
        fields = ("space", "search", "max_runs", "max_minutes", "at_once")
        new = {field: getattr(changed, field) for field in fields}
        new["name"] = " ".join(name.split())
        actions.change(sweep, lambda now: dataclasses.replace(now, **new))
        st.rerun()


def _draw(figures: dict[str, go.Figure], name: str, caption: str, otherwise: str) -> None:
    if name in figures:
        show.figure(figures[name], caption, key=f"sweeps-{name}")
    elif otherwise:
        st.info(otherwise, icon=":material/hourglass_empty:")


def _trials(sweep: Sweep) -> list[Trial]:
    return _read((str(sweep.folder), *_changed(sweep)), sweep)


def _changed(sweep: Sweep) -> tuple[int, int]:
    """Return a cache key that changes with the trials."""
    try:
        facts = sweep.trials.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


@st.cache_resource(show_spinner=False, max_entries=32)
def _read(mark: tuple[object, ...], _sweep: Sweep) -> list[Trial]:
    return read_trials(_sweep)


@st.cache_resource(show_spinner=False, max_entries=16)
def _figures(
    mark: tuple[object, ...], _plan: Plan, _trials: tuple[Trial, ...]
) -> dict[str, go.Figure]:
    return plots.figures(_plan, _trials)


def table(plan: Plan, trials: Sequence[Trial]) -> None:
    if not trials:
        st.info(_("The first run is starting."), icon=":material/hourglass_empty:")
        return
    rows = ranked(plan, trials)
    chosen = st.dataframe(
        pd.DataFrame([_row(plan, trial) for trial in rows]),
        hide_index=True,
        height=_HEIGHT,
        key="sweeps-board",
        on_select="rerun",
        selection_mode="single-row",
    )
    picked = list(chosen["selection"]["rows"]) if chosen else []
    trial = rows[picked[0]] if picked and picked[0] < len(rows) else rows[0]
    _links(plan, trial, is_best=not picked)


def ranked(plan: Plan, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials, best first, then running, diverged and failed ones."""
    sign = -1 if plan.looks_for.is_maximized else 1

    def place(trial: Trial) -> tuple[int, float]:
        if trial.state == "complete" and trial.value is not None:
            return 0, sign * trial.value
        return ("running", "diverged", "failed").index(trial.state) + 1, trial.number

    return sorted(trials, key=place)


def _row(plan: Plan, trial: Trial) -> dict[str, object]:
    figure = "–" if trial.value is None else plan.looks_for.said(trial.value)
    settings = {
        _(space.label_of(plan.base, path)): _(space.shown(value))
        for path, value in trial.values.items()
    }
    run = _run(trial)
    state_text = _(STATES[trial.state])
    if run is not None and trial.state == "running":
        status = run.status
        progress = f"{state_text} {100 * status.progress:.0f}%"
        state_text = progress if status.is_alive else _("waiting")
    return {
        _("Trial"): trial.number,
        _(plan.looks_for.label): figure,
        **settings,
        _("State"): state_text,
        _("Why"): _(trial.why),
    }


def _links(plan: Plan, trial: Trial, *, is_best: bool) -> None:
    title = _("Trial {n}", n=trial.number)
    if is_best and trial.state == "complete":
        title = _("Best: trial {n}", n=trial.number)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"**{title}** · {escape(space.words(plan.base, trial.values))}", width="stretch"
        )
        run = _run(trial)
        if run is not None:
            show.link(
                "train",
                _("Watch run"),
                {"run": run.id, **run_actions.way_back()},
                icon=":material/show_chart:",
            )
            if st.button(
                _("Use its settings"),
                icon=":material/tune:",
                key="sweeps-take",
                help=_("Opens Train with these settings."),
            ):
                state.set_draft(run.experiment.model_dump())
                state.set_current_run(None)
                st.switch_page(page_table.path_of("train"))


def _run(trial: Trial) -> Run | None:
    if trial.run_id is None:
        return None
    try:
        run = runs_access.store().get(trial.run_id)
    except RunNotFound:
        return None
    return None if run.problem else run
