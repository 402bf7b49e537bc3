"""Live: a run on stage, during and after training. Two fragments poll while it is active.

The run is only read here; leaving, reloading or a second tab do not change it.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import streamlit as st

from pages.i18n import N_, _, ngettext, paragraph
from pages.train import crowd, doctor, fine_tune, live_keys, opened, play, run_buttons
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.model import live_curves, stage_view
from pages.ui.runs import run_actions, run_dialogs, run_words, runs_access, shown_run
from pages.ui.runs.foreign_run import is_foreign
from pages.ui.typed import escape
from tfm_core.runs import fine_tuning
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status

EAGER = 0.25
"""Seconds between polls of a new run until its curve has a point."""

BRISK = 1.0
"""Seconds between polls of a young, waiting or paused run."""

_SOON = 10.0
"""Seconds after creation within which a run should start; later it waits for others."""

_CALM = ((60.0, 3.0), (20.0, 2.0))
"""(Seconds of training, seconds between polls): later polls add only a pixel or two."""

_LOOK_SHARE = 2  # below the first screen: every other poll

_MAX_SHOWN = 4


def page(run: Run) -> None:
    name = escape(run.meta.name)
    if run.problem:
        st.title(name, anchor=False)
        show.problem(run.problem)
        run_buttons.away()
        return
    if run.status.state == "opened" and run.experiment.task.is_opened:
        state.set_current_run(run.id)
        opened.page(run)
        return
    state.set_current_run(run.id)  # also after a page change, so that a reload finds it
    was_active = run.status.is_active
    calm = _pace(run, run.status)
    pace = None if calm is None else crowd.pace(calm, crowd.record_poll())
    later = None if pace is None else BRISK if pace <= BRISK else pace * _LOOK_SHARE
    due = math.inf

    def pulse() -> None:
        nonlocal due
        if _pulse(run, was_active, calm, is_due=time.monotonic() >= due):
            due = min(due, time.monotonic() + BRISK)

    play.arrive(run)
    if play.is_playable(run):
        with st.container(key="play"):
            left, right = st.columns([1, 3.4], gap="medium")
        with left:
            st.fragment(play.of_run)(run)
            st.fragment(play.last_turn, run_every=pace)(run)
        with right:
            st.fragment(pulse, run_every=pace)()
    else:
        st.fragment(pulse, run_every=pace)()
    st.fragment(_details, run_every=later)(run)
    if fine_tuning.why_not(run) is None:
        fine_tune.area(run)
    run_dialogs.TWIN_DIALOG.draw()


def _pace(run: Run, status: Status) -> float | None:
    """Return the seconds until the next poll; None once nothing changes any more."""
    if not status.is_active:
        return None
    made = datetime.fromisoformat(run.meta.created).astimezone(UTC)
    is_new = (datetime.now(UTC) - made).total_seconds() < _SOON
    if status.state != "paused" and is_new and not len(runs_access.curves(run).steps):
        return EAGER
    if status.state != "running":
        return BRISK
    return next((pace for seconds, pace in _CALM if status.seconds > seconds), BRISK)


def _pulse(run: Run, was_active: bool, pace: float | None, *, is_due: bool) -> bool:
    """Draw header, figures and curves; redraw the page when pace or state changes.

    Return whether a change of pace is pending: not with the first point, which would have to wait.
    """
    crowd.record_poll()
    if not run.folder.is_dir():
        state.set_current_run(None)
        st.rerun()
    doctor.go_on()
    status = run.status
    wanted = _pace(run, status)
    if status.is_active != was_active or (wanted != pace and (pace != EAGER or is_due)):
        state.draw_anew()
    with st.container(gap="xsmall"):
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key="live-head"
        ):
            st.title(escape(run.meta.name), anchor=False, width="content")
            badges = shown_run.origin_badge(run)
            if not run.meta.recorded:  # which are finished
                badges = f"{run_words.badge(status, run.outcome)} {badges}"
            st.markdown(badges, width="content")
            run_buttons.row(run, status)
        run_buttons.watcher(run)
        live_keys.line(run, status, _state_words(run, status), doctor.healthy_text(run))
        _state_messages(run, status)
        doctor.panel(run)
        if origin := shown_run.origin_words(run):
            st.caption(f":material/move_to_inbox: {escape(origin)}")
        if trained := fine_tune.words(run):
            st.caption(f":material/model_training: {trained}")
        doctor.origin(run)
        if status.state != "queued":
            try:
                stage_view.stage(run, key=f"stage-{run.id}")
            except ValueError as error:
                show.problem(error)
    return wanted != pace


def _details(run: Run) -> None:
    status = run.status
    if status.state == "queued" or _pace(run, status) == EAGER:
        return  # nothing to see yet, and importing plotly would delay the first point
    live_keys.part(run, status)
    st.header(_("Curves in detail"), anchor=False)
    live_curves.part(run)


def _state_words(run: Run, status: Status) -> str:
    if status.state == "starting":
        return _("Starting: preparing data and model.")
    is_compiled = not run.experiment.training.compile or runs_access.curves(run).compiled
    if status.state == "running" and not is_compiled:
        return _("Compiling the model; this can take minutes.")
    if status.state == "paused":
        if visitors.watches(run):
            return _("Paused by its owner.")
        return _("Paused: train one step, or resume.")
    if status.state in {"finished", "stopped"}:
        return escape(_(status.reason))
    return ""


def _state_messages(run: Run, status: Status) -> None:
    with st.container():
        if status.is_silent:
            st.warning(
                paragraph("train/silent", time=show.duration(status.silent)),
                icon=":material/hourglass_disabled:",
            )
        outcome = run.outcome
        if status.state == "queued":
            _queued(run, status)
        elif status.state == "failed":
            why = escape(_(run_words.reason(run) or N_("No reason was given.")))
            hint = _("Press Resume to try again.")
            if outcome is not None and outcome.repeats:
                hint = _("Resume would fail again: start a new run with other settings.")
            if visitors.watches(run):
                hint = _("Start a new run to train with these settings.")
            if is_foreign(run):
                hint = ""
            st.error(f"{why}\n\n{hint}", icon=":material/error:")
        elif status.state == "interrupted":
            words = _("Interrupted at step {step}.", step=f"{status.step:,}")
            why = escape(_(status.reason))
            st.warning(f"{words} {_resume(run)}\n\n{why}", icon=":material/power_off:")


def _resume(run: Run) -> str:
    if is_foreign(run) or visitors.watches(run):
        return ""
    step = run.checkpoint_step
    if step is None:
        return _("Nothing was saved: Resume starts over.")
    return _("Resume continues from step {step}.", step=f"{step:,}")


def _queued(run: Run, status: Status) -> None:
    sentence = _("Waiting for a worker.")
    if status.queue_position:
        sentence = _("Number {n} in the queue.", n=status.queue_position)
    why = waiting_line.start_errors.get(run.folder)
    if why is not None:
        sentence = escape(_(why))
    st.info(sentence, icon=":material/hourglass_empty:")
    active = [
        other
        for other in runs_access.store().list()
        if other.status.is_alive and not other.meta.recorded
    ]
    own = [other for other in active if not visitors.watches(other)]
    n_others = len(active) - len(own)
    if n_others:
        st.caption(
            ngettext(
                "{n} run of another visitor is active.",
                "{n} runs of other visitors are active.",
                n_others,
                n=n_others,
            )
        )
    if own:
        st.caption(_("Stop one of these to make room:"))
    with st.container(horizontal=True, gap="small"):
        for other in own[:_MAX_SHOWN]:
            its_state = run_words.STATES[other.status.state]
            label = f"{escape(other.meta.name)}: {_(its_state.label)}"
            if st.button(label, icon=its_state.icon, key=f"live-other-{other.id}"):
                run_actions.forget_way_back()
                state.set_current_run(other.id)
                st.rerun()
