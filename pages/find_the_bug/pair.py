"""The pair of runs, from the link, the app or a new training, and its round."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field

import streamlit as st

from pages.i18n import N_, _
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.address import parameters, view_link
from pages.ui.address.parameters import Unfit, Written
from pages.ui.runs import comparison, run_time, runs_access
from pages.ui.runs.run_actions import Start
from tfm_core.inspect.bugs.bugs import basis, of_level, with_bug
from tfm_core.inspect.bugs.probes import can_probe
from tfm_core.inspect.bugs.round import ComparedMeasurement, Twins
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

READY = ("recorded-many-heads", "recorded-one-head")
"""A pair that comes with the app: a healthy run and its twin."""
_ROUNDS = "find-the-bug-rounds"
_SOLVED = "find-the-bug-solved"


def _ids_of(text: str) -> tuple[str, str]:
    if not re.fullmatch(r"[\w-]{1,64}\.[\w-]{1,64}", text):
        raise Unfit(_("two runs, separated by a dot"))
    healthy, _dot, twin = text.partition(".")
    return healthy, twin


PAIR = Written("pair", reader=_ids_of, writer=".".join, first=READY, key="find-the-bug-pair")
LEVEL = parameters.named(
    "level",
    {"1": N_("Plain"), "2": N_("Hidden"), "3": N_("Subtle")},
    key="find-the-bug-level",
)


def shown() -> Twins | None:
    """Return the pair to show; None if even the recorded one is missing."""
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
    fitting = (
        run
        for run in visitors.listed()
        if run.problem is None and run.experiment == basis() and not visitors.watches(run)
    )
    healthy = next(
        (run for run in fitting if run.status.is_active or run.status.state == "finished"), None
    )
    time = run_time.takes(basis())
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            level = view_link.choice(
                _("How well it hides"),
                LEVEL,
                help=_("Plain: one curve or probe shows it; subtle: the model runs well."),
            )
        if st.button(
            _("Train a new pair, {time} each", time=time)
            if healthy is None
            else _("Train a new suspect, {time}", time=time),
            type="primary" if pair is None else "secondary",
            icon=":material/bug_report:",
            key="bug-train",
        ):
            _train(int(level), healthy)
        if pair is not None:
            task = _(pair.healthy.experiment.task.facts.label)
            words = _("**{task}**: this pair comes with the app.", task=task)
            if not pair.twin.meta.recorded:
                words = _("**{task}**: this pair was trained here.", task=task)
            st.caption(words, width="stretch")


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


def _train(level: int, healthy: Run | None) -> None:
    """Queue the suspect, and a healthy run if there is none; the names do not tell the bug."""
    bugs = [bug for bug in of_level(level) if bug.level == level]
    fresh = [bug for bug in bugs if bug.name not in seen()]
    bug = secrets.choice(fresh or bugs)
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


@dataclass
class Round:
    """The state of a round.

    answers: by probe, the newest last. wanted: probes that still have to run. wrong: wrong guesses.
    hint: on the last of them, or why a probe failed. is_over: the mistake was named or shown.
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
    """End a round. Raises OSError if the twin could not be marked as revealed."""
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
