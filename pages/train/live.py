"""Live: a run on stage during and after training, and the training doctor's symptoms and fixes.

Two fragments poll while the run is active. This page only reads the run: leaving, reloading or a
second tab do not change it.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.model import stage_view
from pages.app.runs import comparison, run_actions, run_words, runs_access, shown_run
from pages.app.runs.run_list import RunButtons
from pages.app.typed import escape
from pages.i18n import N_, _, language, ngettext, paragraph
from pages.train import fine_tune, live_keys, opened, play
from tfm_core.inspect.differences import change_text, differences
from tfm_core.plots.kinds import reference_line
from tfm_core.plots.of_run import is_in_nats
from tfm_core.plots.training.curves import learning_curve, mark_turns
from tfm_core.runs import fine_tuning
from tfm_core.runs.curves import Curves
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunNotFound
from tfm_core.studies.study import Arm, changed
from tfm_core.studies.symptoms import Symptom

EAGER = 0.25
"""Seconds between polls of a new run until its curve has a point."""

BRISK = 1.0
"""Seconds between polls of a young, waiting or paused run."""

_SOON = 10.0
"""Seconds after creation within which a run should start; later it waits for others."""

_SLOWER = ((60.0, 3.0), (20.0, 2.0))
"""(Seconds of training, seconds between polls): later polls add only a pixel or two."""

_DETAILS_SHARE = 2  # below the first screen: every other poll

POLLS_PER_SECOND = 7
"""Polls of all sessions per second, which take less than half a core.

A session's two polls (curves, predictions) cost some 55 ms, so with more sessions each polls less
often; presses stay fast and the training keeps its core. One process serves all sessions."""

SESSION_TIMEOUT = 30.0
"""A session that has not polled for this long has left."""

_MAX_SHOWN = 4

WINDOWS = (1, 5, 10, 20, 50, 100, 200)
_WINDOW, _LOG = "curves-window", "curves-log"
_SESSION = "crowd-session"
_FIX = "doctor-cured_id"


def page(run: Run) -> None:
    name = escape(run.meta.name)
    if run.problem:
        st.title(name, anchor=False)
        show.problem(run.problem)
        with st.container(horizontal=True, gap="small"):
            if st.button(
                _("Start a new run"), icon=":material/add:", key="run-new", type="primary"
            ):
                run_actions.configure()
            show.link("runs", _("All runs"), icon=":material/list:")
        return
    if run.status.state == "opened" and run.experiment.training is None:
        state.set_current_run(run.id)
        opened.page(run)
        return
    state.set_current_run(run.id)  # also after a page change, so that a reload finds it
    was_active = run.status.is_active
    interval = _pace(run, run.status)
    pace = None if interval is None else crowded(interval, record_poll())
    later = None if pace is None else BRISK if pace <= BRISK else pace * _DETAILS_SHARE
    due = math.inf

    def pulse() -> None:
        nonlocal due
        if _pulse(run, was_active, interval, is_due=time.monotonic() >= due):
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
    return next((pace for seconds, pace in _SLOWER if status.seconds > seconds), BRISK)


class Crowd:
    """When each session polled last. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._polls: dict[str, float] = {}

    def record_poll(self, session: str) -> int:
        """Record a poll of a session and return how many sessions are polling."""
        now = self._clock()
        with self._lock:
            self._polls[session] = now
            gone = [name for name, when in self._polls.items() if now - when > SESSION_TIMEOUT]
            for name in gone:
                del self._polls[name]
            return len(self._polls)


def crowded(seconds: float, n_sessions: int) -> float:
    """Return the seconds between two polls: the given ones, or more in a crowd.

    Above a second they are whole, since each change of pace redraws the page.
    """
    least = n_sessions / POLLS_PER_SECOND
    return max(seconds, least if least <= 1 else float(math.ceil(least)))


def record_poll() -> int:
    """Record a poll of a session and return how many sessions are polling."""
    return _crowd().record_poll(st.session_state.setdefault(_SESSION, secrets.token_hex(8)))


@st.cache_resource(show_spinner=False)
def _crowd() -> Crowd:
    return Crowd()


def _pulse(run: Run, was_active: bool, pace: float | None, *, is_due: bool) -> bool:
    """Draw header, figures and curves; redraw the page when pace or state changes.

    Return whether a change of pace is pending: not with the first point, which would have to wait.
    """
    record_poll()
    if not run.folder.is_dir():
        state.set_current_run(None)
        st.rerun()
    _open_fix()
    status = run.status
    wanted = _pace(run, status)
    if status.is_active != was_active or (wanted != pace and (pace != EAGER or is_due)):
        state.rerun()
    with st.container(gap="xsmall"):
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key="live-head"
        ):
            st.title(escape(run.meta.name), anchor=False, width="content")
            badges = shown_run.origin_badge(run)
            if not run.meta.recorded:  # which are finished
                badges = f"{run_words.badge(status, run.outcome)} {badges}"
            st.markdown(badges, width="content")
            RunButtons(run, status).stage()
        if visitors.watches(run):
            watchers = visitors.watchers_words(run, is_active=status.is_active)
            st.caption(f":material/visibility: {watchers}")
        live_keys.line(run, status, _state_words(run, status))
        _state_messages(run, status)
        _doctor(run)
        if origin := shown_run.origin_words(run):
            st.caption(f":material/move_to_inbox: {escape(origin)}")
        if trained := fine_tune.trained_part(run):
            st.caption(f":material/model_training: {trained}")
        _fix_origin(run)
        if status.state != "queued":
            try:
                stage_view.stage(run, key=f"stage-{run.id}")
            except ValueError as error:
                show.problem(error)
    return wanted != pace


def _doctor(run: Run) -> None:
    symptoms = []
    for symptom in run_words.symptoms(run) or ():
        compared = [
            differences([run.experiment, changed(run.experiment, cure.changes)])
            for cure in symptom.cures
        ]
        # a fix would give away a setting that the open lesson asks for
        if not any(open_lesson.asks_for(row.field) for rows in compared for row in rows):
            symptoms.append(symptom)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="doctor"):
        if not symptoms:
            return
        first, *others = symptoms
        message = escape(_(first.sentence))
        if run.status.state == "failed":  # the reason is shown already
            message = _("What helps:")
        st.caption(f":orange[:material/stethoscope: {message}]", width="stretch")
        if first.cures:
            _cure_button(run, first.cures[0], key="doctor-cure", is_first=True)
        _more(run, first, others)


def _more(run: Run, first: Symptom, others: list[Symptom]) -> None:
    if not others and len(first.cures) < 2:
        return
    n = len(others)
    label = ngettext("{n} more symptom", "{n} more symptoms", n, n=n)
    with st.popover(label if n else _("Show more fixes"), key=state.menu_key("doctor-more")):
        for number, symptom in enumerate((first, *others)):
            if number:
                st.caption(f":orange[:material/stethoscope: {escape(_(symptom.sentence))}]")
            for place, cure in enumerate(symptom.cures if number else symptom.cures[1:]):
                _cure_button(run, cure, key=f"doctor-{number}-{place}")


def _cure_button(run: Run, cure: Arm, *, key: str, is_first: bool = False) -> None:
    help_text = _("Starts a new run.")
    if run.status.is_active:
        help_text = _("Stops this run and starts a new one.")
    comparison.cure_button(
        run, cure, key=key, on_click=_start_cure, is_first=is_first, words=help_text
    )


def _start_cure(run: Run, cure: Arm) -> None:
    """Start the fix in the callback: a redraw could be overtaken by a poll."""
    fix = run_actions.cure(run, cure)
    st.session_state[_FIX] = None if fix is None else fix.id


def _open_fix() -> None:
    """Open the run that a press started, or redraw with the reason why it did not start."""
    if _FIX in st.session_state:
        fix_id = st.session_state.pop(_FIX)
        if fix_id is not None:
            state.set_current_run(fix_id)
        st.rerun()


def _fix_origin(run: Run) -> None:
    original_id = run.meta.cure_of
    if original_id is None:
        return
    try:
        original = runs_access.store().get(original_id)
        what = escape(_(change_text(original.experiment, run.experiment)))
        name = escape(original.meta.name)
    except (RunNotFound, ValueError):
        st.caption(f":material/healing: {_('Fix of a deleted run.')}")
        return
    message = _("Fix of “{name}” from the start: {what}.", name=name, what=what)
    if run.meta.cured_from:
        step = f"{run.meta.cured_from:,}"
        message = _("Fix of “{name}” from step {step}: {what}.", name=name, step=step, what=what)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="doctor-origin"
    ):
        st.caption(f":material/healing: {message}", width="content")
        if st.button(
            _("Compare with the original"),
            icon=":material/compare_arrows:",
            type="tertiary",
            key="doctor-compare",
        ):
            comparison.open_comparison([original.id, run.id])


def _details(run: Run) -> None:
    status = run.status
    if status.state == "queued" or _pace(run, status) == EAGER:
        return  # nothing to see yet, and importing plotly would delay the first point
    live_keys.part(run, status)
    st.header(_("Curves in detail"), anchor=False)
    _curves(run)


def _state_words(run: Run, status: Status) -> str:
    if status.state == "starting":
        return _("Preparing data and model.")
    training = run.experiment.training
    compiles = training is not None and training.compile and not runs_access.curves(run).compiled
    if status.state == "running" and compiles:
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
            if run.experiment.training is None:
                hint = ""
            st.error(f"{why}\n\n{hint}", icon=":material/error:")
        elif status.state == "interrupted":
            sentences = [_("Interrupted at step {step}.", step=f"{status.step:,}")]
            if run.experiment.training is not None and not visitors.watches(run):
                if run.checkpoint_step is None:
                    sentences.append(_("Nothing was saved, so Resume starts over."))
                else:
                    step = f"{run.checkpoint_step:,}"
                    sentences.append(_("Resume continues from step {step}.", step=step))
            why = escape(_(status.reason))
            st.warning(f"{' '.join(sentences)}\n\n{why}", icon=":material/power_off:")


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


def _curves(run: Run) -> None:
    """Draw loss and accuracy as live figures, side by side."""
    curves = runs_access.curves(run)
    window = st.session_state.get(_WINDOW, 10)
    is_log = bool(st.session_state.get(_LOG, False))
    # the key changes exactly when a figure would
    sizes = [
        (len(series), series.last("step"))
        for series in (curves.steps, curves.validation, curves.averaged, curves.test)
    ]
    key = (run.id, *sizes, len(curves.resumed), len(curves.turns), bool(curves.started))
    loss, accuracy = _figures(key, window, is_log, language(), run, curves)
    left, right = st.columns(2)
    with left:
        show.figure(
            loss,
            _(
                "The loss should fall below guessing. If validation rises far above training, the "
                "model overfits."
            )
            if is_in_nats(run, curves)
            else _("If validation rises far above training, the model overfits."),
            key=f"loss-{run.id}",
        )
    facts = run.experiment.task.facts
    if getattr(facts, "hides", False):
        caption = _("Share of right words. Several may fit a gap, so even a perfect model errs.")
    elif facts.answer in ("sequence", "blanks"):
        caption = _("Share of right tokens, and of sequences without an error.")
    elif facts.answer == "text":
        caption = _(
            "Share of next tokens predicted. It stays below 1: texts continue in many ways."
        )
    else:
        caption = _("Share of right examples.")
    with right:
        show.figure(accuracy, caption, key=f"accuracy-{run.id}")
    if st.session_state.get(_WINDOW) not in WINDOWS:
        st.session_state[_WINDOW] = 10
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.select_slider(
            _("Smoothing"),
            WINDOWS,
            key=_WINDOW,
            width=320,
            format_func=lambda n: _("off") if n == 1 else _("mean of {n} batches", n=n),
            persist_state="session",
        )
        st.toggle(
            _("Logarithmic steps"),
            key=_LOG,
            help=_("Stretches the start."),
            persist_state="session",
        )


@st.cache_resource(show_spinner=False, max_entries=64)
def _figures(
    key: tuple[object, ...], window: int, is_log: bool, spoken: str, _run: Run, _read: Curves
) -> tuple[go.Figure, go.Figure]:
    started = _read.started
    total = int(started.get("total_steps") or _run.status.total_steps or 1)
    training = _run.experiment.training
    curve = partial(
        learning_curve,
        _read,
        total_steps=total,
        window=window,
        is_log=is_log,
        scores_sequences=_run.experiment.task.facts.answer in ("sequence", "blanks"),
        is_patient=training is not None and training.keeps_best,
    )
    loss = curve("loss", title="" if is_in_nats(_run, _read) else _("loss"))
    accuracy = curve("accuracy")
    for figure, levels in zip((loss, accuracy), stage_view.marks(_run, _read), strict=True):
        mark_turns(figure, run_words.turn_marks(_run))
        for level in levels:
            reference_line(figure, **level)
        figure.update_layout(uirevision="log" if is_log else "linear")
    return loss, accuracy
