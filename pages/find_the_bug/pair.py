"""The pair of runs: the one of the link, the one that comes with the app, or a new one, trained."""

from __future__ import annotations

import secrets

import streamlit as st

from pages.find_the_bug import state as played
from pages.find_the_bug.link import LEVEL, PAIR, READY
from pages.i18n import _
from pages.ui import run_time, runs_access, show, starts, state, view_link, visitors
from pages.ui.run_actions import Start
from tfm_core.inspect.bugs.bugs import Bug, basis, of_level, with_bug
from tfm_core.inspect.bugs.probes import can_probe
from tfm_core.inspect.bugs.round import Twins
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound


def shown() -> Twins | None:
    """Return the pair to look at; None where not even the one that comes with the app is there."""
    view_link.warn(view_link.receive(PAIR))
    ids: tuple[str, str] = st.session_state[PAIR.key]
    pair = _pair(ids)
    if pair is None and ids != READY:
        view_link.warn(_("The link asks for a pair that is not here; the ready one is shown."))
        st.session_state[PAIR.key] = ids = READY
        pair = _pair(ids)
    view_link.say(PAIR, ids)
    return pair


def bar(pair: Twins | None) -> None:
    """Ask for the level, and offer a new pair."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            level = view_link.choice(
                _("How well it hides"),
                LEVEL,
                help=_("Plain ones are seen in a curve or with one probe; subtle ones run well."),
            )
        healthy = _healthy()
        time = run_time.takes(basis())
        words = _("Train a pair with a bug, {time} each") if healthy is None else (
            _("Another one: train a twin, {time}")
        )  # fmt: skip
        if st.button(
            words.format(time=time), type="primary", icon=":material/bug_report:", key="bug-train"
        ):
            _train(int(level), healthy)
        if pair is not None:
            st.caption(_said(pair), width="stretch")


def _said(pair: Twins) -> str:
    task = _(pair.healthy.experiment.task.facts.label)
    if pair.twin.meta.recorded:
        words = _("**{task}**: this pair comes with the app. One of its two runs has a mistake.")
    else:
        words = _("**{task}**: two runs from one seed on the same data. One has a mistake.")
    return words.format(task=task)


def _pair(ids: tuple[str, str]) -> Twins | None:
    runs: list[Run] = []
    for run_id in ids:
        try:
            run = runs_access.store().get(run_id)
        except RunNotFound:
            return None
        if run.problem is not None or not can_probe(run.experiment):
            return None
        runs.append(run)
    pair = Twins(*runs)
    return None if pair.bug is None else pair


def _healthy() -> Run | None:
    """Return a healthy run that is there already, so that a new round trains its twin alone."""
    fitting = (
        run
        for run in visitors.listed()
        if run.problem is None and run.experiment == basis() and not visitors.watches(run)
    )
    return next(
        (run for run in fitting if run.status.is_active or run.status.state == "finished"), None
    )


def _train(level: int, healthy: Run | None) -> None:
    """Queue the twin, and the healthy run where there is none; names do not say which bug it is."""
    bug = _hidden(level)
    mark = secrets.token_hex(2)
    name = _("Suspect {mark}", mark=mark)
    twin = Start(with_bug(basis(), bug), "cpu", name, is_suspect=True)
    sound = Start(basis(), "cpu", _("Healthy twin {mark}", mark=mark))
    try:
        begun = starts.begin([twin] if healthy else [sound, twin])
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    runs = [*([healthy] if healthy else []), *begun]
    if len(runs) == 2:  # else a notice says how many may wait here
        st.session_state[PAIR.key] = (runs[0].id, runs[1].id)
        view_link.say(PAIR, st.session_state[PAIR.key])
    state.draw_anew()


def _hidden(level: int) -> Bug:
    """Draw a mistake of a level, one that this session has not seen, while there is one."""
    bugs = [bug for bug in of_level(level) if bug.level == level]
    fresh = [bug for bug in bugs if bug.name not in played.seen()]
    return secrets.choice(fresh or bugs)
