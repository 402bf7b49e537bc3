"""The pair of runs, from the link, the app or a new training, and its round."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import streamlit as st

from pages.find_the_bug.link import LEVEL, PAIR, READY
from pages.i18n import _
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.runs import comparison, run_time, runs_access
from pages.ui.runs.run_actions import Start
from tfm_core.inspect.bugs.bugs import Bug, basis, of_level, with_bug
from tfm_core.inspect.bugs.probes import can_probe
from tfm_core.inspect.bugs.round import ComparedMeasurement, Twins
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

_ROUNDS = "find-the-bug-rounds"
_SOLVED = "find-the-bug-solved"


def shown() -> Twins | None:
    """Return the pair to look at; None where not even the one that comes with the app is there."""
    view_link.warn(view_link.receive(PAIR))
    ids: tuple[str, str] = st.session_state[PAIR.key]
    pair = _pair(ids)
    if pair is None and ids != READY:
        view_link.warn(_("The link's pair is not here; the ready one is shown."))
        st.session_state[PAIR.key] = ids = READY
        pair = _pair(ids)
    view_link.say(PAIR, ids)
    return pair


def bar(pair: Twins | None) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            level = view_link.choice(
                _("How well it hides"),
                LEVEL,
                help=_("Plain: one curve or probe shows it; subtle: the model runs well."),
            )
        healthy = _healthy()
        time = run_time.takes(basis())
        if healthy is None:
            words = _("Train a pair with a bug, {time} each", time=time)
        else:
            words = _("Another one: train a twin, {time}", time=time)
        if st.button(words, type="primary", icon=":material/bug_report:", key="bug-train"):
            _train(int(level), healthy)
        if pair is not None:
            st.caption(_description(pair), width="stretch")


def _description(pair: Twins) -> str:
    task = _(pair.healthy.experiment.task.facts.label)
    if pair.twin.meta.recorded:
        return _("**{task}**: this pair comes with the app. One run has a mistake.", task=task)
    return _("**{task}**: two runs, one seed, the same data. One has a mistake.", task=task)


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
        begun = comparison.start_all([twin] if healthy else [sound, twin])
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
    fresh = [bug for bug in bugs if bug.name not in seen()]
    return secrets.choice(fresh or bugs)


@dataclass
class Round:
    """answers: of each probe that was pressed, the newest last; wanted: those still to be asked.

    wrong: the guesses that were; hint: on the last of them, or what kept a probe from an answer.

    is_over: the mistake was named, or shown; is_won: it was named.
    """

    answers: dict[str, tuple[ComparedMeasurement, ...]] = field(default_factory=dict)
    wanted: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    hint: str = ""
    is_over: bool = False
    is_won: bool = False


def round_of(pair: Twins) -> Round:
    rounds: dict[str, Round] = st.session_state.setdefault(_ROUNDS, {})
    return rounds.setdefault(pair.twin.id, Round())


def end(pair: Twins, played: Round, name: str, *, is_won: bool) -> None:
    """End a round, whose mistake is not hidden again before the others were.

    Raises OSError where it could not be noted that the twin hides nothing any more.
    """
    runs_access.reveal(pair.twin, may_change=not visitors.watches(pair.twin))
    played.is_over, played.is_won, played.hint = True, is_won, ""
    if name not in seen():
        seen().append(name)


def seen() -> list[str]:
    solved: list[str] = st.session_state.setdefault(_SOLVED, [])
    return solved


def n_won() -> int:
    rounds: dict[str, Round] = st.session_state.get(_ROUNDS, {})
    return sum(played.is_won for played in rounds.values())
