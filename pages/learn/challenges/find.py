"""Find: two runs from one seed, one of them with a mistake to measure, name and read."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.address.parameters import InvalidValue, Written
from pages.app.navigation import ticks
from pages.app.runs import comparison, run_time, runs_access
from pages.app.runs.run_actions import Start
from pages.components.heads import GridStyle, head_grid
from pages.i18n import N_, _
from pages.learn.challenges.challenge import ICONS, Challenge
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.maps import map_view
from tfm_core.probe.labels import KINDS, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.studies.bugs import (
    BUGS,
    PROBES,
    ComparedMeasurement,
    basis,
    bug_of,
    can_probe,
    difference,
    hint,
    measure_pair,
    possible,
)
from tfm_core.studies.study import Arm, Study, StudyRuns, changed, runs_of

SCOPE = "bug"
LEVELS = {
    "1": (N_("A plain bug"), N_("One curve or probe shows it.")),
    "2": (N_("A hidden bug"), N_("It takes the right probe.")),
    "3": (N_("A subtle bug"), N_("The model runs well.")),
}
"""The title of each challenge, and how well its bug hides."""
READY = {
    "1": ("recorded-causal-mask", "recorded-no-mask"),
    "2": ("recorded-many-heads", "recorded-one-head"),
}
"""The pairs that come with the app, by level."""
_MINUTES = 8
_ROUNDS, _SEEN = "bug-rounds", "bugs-seen"
CURVES, MAPS, ANSWERS = "curves", "maps", "answers"
_WINDOW = 15  # steps that a thick line averages
PAR = 5
"""The number of probes that should be enough."""
_PROBE = "bug-probe"
_NEXT = "bug-next"  # the evidence to show next


Pair = tuple[Run, Run]
"""A healthy run and its twin, from the same seed and data."""


class PairIds(Written[tuple[str, ...]]):
    """The ids of a pair; no message names them, as they might tell the bug."""

    def words(self, value: tuple[str, ...]) -> str:
        return _("another pair")


@dataclass(frozen=True)
class Evidence:
    """The evidence that is shown, and the kind of attention of its maps."""

    evidence: str = view.choice(
        N_("Evidence"),
        {CURVES: N_("Curves"), MAPS: N_("Attention and masks"), ANSWERS: N_("Probes’ answers")},
        look={"label_visibility": "collapsed"},
    )
    kind: str = view.choice(
        N_("Attention"),
        {name: kind.label for name, kind in KINDS.items()},
        when=lambda chosen: chosen.evidence == MAPS,
    )


def challenge(level: str) -> Challenge:
    title, about = map(_, LEVELS[level])
    names = {bug.name for bug in BUGS.values() if bug.level == int(level)}
    n_seen = len(names & _seen())
    icon = ICONS[level]
    return Challenge({SCOPE: level}, title, about, icon, int(level), _MINUTES, n_seen, len(names))


@dataclass
class Round:
    """The state of a round.

    answers: by probe, the newest last. queued: probes that still have to run. wrong: wrong guesses.
    hint: on the last guess, or why a probe failed. is_over: the mistake was named or shown.
    """

    answers: dict[str, tuple[ComparedMeasurement, ...]] = field(default_factory=dict)
    queued: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    hint: str = ""
    is_over: bool = False
    is_won: bool = False


TWINS = Study(
    name="find-the-bug",
    title=N_("Find the bug"),
    base=basis(),
    arms=(Arm("healthy", N_("Healthy")), Arm("suspect", N_("Suspect"))),
    metrics=("sequences", "loss", "gradient"),
)
"""What a pair is; the changes of the suspect are hidden."""


def draw(level: str) -> None:
    pair = _pair(view.one(pair_field(level), "pair", SCOPE)) or _pair(READY.get(level, ()))
    _train_bar(level, pair)
    if pair is None:
        st.info(_("There is no pair yet. Train one."), icon=":material/bug_report:")
        return
    comparison.follow(pair, partial(_round, pair))


def pair_field(level: str) -> Any:
    first = READY.get(level, ())
    return view.held(PairIds("", reader=_ids_of, writer=".".join, first=first), of=level)


def _ids_of(text: str) -> tuple[str, ...]:
    ids = tuple(text.split("."))
    if _pair(ids) is None:
        raise InvalidValue(_("a healthy run and its twin on this machine"))
    return ids


def _pair(ids: Sequence[str]) -> Pair | None:
    try:
        healthy, twin = (runs_access.store().get(run_id) for run_id in ids)
    except ValueError:  # not here, or not two
        return None
    if any(run.problem is not None or not can_probe(run.experiment) for run in (healthy, twin)):
        return None
    return (healthy, twin) if bug_of(healthy.experiment, twin.experiment) else None


def _train_bar(level: str, pair: Pair | None) -> None:
    own = (run for run in visitors.listed() if not visitors.watches(run))
    healthy = runs_of(TWINS, own).by_arm["healthy"].get(basis().seed)
    time = run_time.estimate_text(basis())
    label = _("Train a new suspect, {time}", time=time)
    if healthy is None:
        label = _("Train a new pair, {time} each", time=time)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if st.button(
            label,
            type="primary" if pair is None else "secondary",
            icon=":material/bug_report:",
            key="bug-train",
        ):
            _train(level, healthy)
        if pair is not None:
            task = _(pair[0].experiment.task.facts.label)
            origin = _("**{task}**: this pair was trained here.", task=task)
            if pair[1].meta.recorded:
                origin = _("**{task}**: this pair comes with the app.", task=task)
            st.caption(origin, width="stretch")


def _train(level: str, healthy: Run | None) -> None:
    """Queue the suspect, and a healthy run if there is none; the names do not tell the bug."""
    bugs = [bug for bug in BUGS.values() if bug.level == int(level)]
    fresh = [bug for bug in bugs if bug.name not in _seen()]
    bug = secrets.choice(fresh or bugs)
    mark = secrets.token_hex(2)
    name = _("Suspect {mark}", mark=mark)
    twin = Start(changed(basis(), bug.changes), "cpu", name, is_suspect=True)
    sound = Start(basis(), "cpu", _("Healthy twin {mark}", mark=mark))
    try:
        begun = comparison.start_all([twin] if healthy else [sound, twin])
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    runs = [*([healthy] if healthy else []), *begun]
    if len(runs) == 2:  # else a notice says how many may wait here
        st.session_state[f"{SCOPE}-{level}-pair"] = (runs[0].id, runs[1].id)
    state.rerun()


def _seen() -> set[str]:
    """Return the bugs that were named or shown in this session."""
    seen: set[str] = st.session_state.setdefault(_SEEN, set())
    return seen


def _round(pair: Pair, was_live: bool) -> None:
    rounds: dict[str, Round] = st.session_state.setdefault(_ROUNDS, {})
    played = rounds.setdefault(pair[1].id, Round())
    if (evidence := st.session_state.pop(_NEXT, None)) is not None:
        st.session_state[f"{SCOPE}-evidence"] = evidence
    if was_live:
        comparison.progress(pair)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _evidence(pair, played)
    with right:
        if played.is_over:
            _solution(pair, played)
        else:
            _probes(pair, played)
            _guess(pair, played)


def _evidence(pair: Pair, played: Round) -> None:
    kinds = {name: KINDS[name].label for name in modules_by_kind(pair[0].experiment)}
    maps = view.choice(N_("Attention"), kinds, when=lambda chosen: chosen.evidence == MAPS)
    chosen = view.ask(Evidence, SCOPE, kind=maps)
    if chosen.evidence == MAPS:
        for column, run, arm in zip(st.columns(2), pair, TWINS.arms, strict=True):
            with column:
                _grid(run, _(arm.label), chosen.kind)
    elif chosen.evidence == ANSWERS:
        _answers(played)
    else:
        runs = StudyRuns({arm.name: {0: run} for arm, run in zip(TWINS.arms, pair, strict=True)})
        figure = comparison.study_curves(TWINS, runs, height=380, window=_WINDOW)
        if figure is not None:
            caption = _("Sequences right (teacher forcing), loss, gradient norm.")
            show.figure(figure, caption, key="bug-curves")


def _grid(run: Run, name: str, kind: str) -> None:
    """Show all heads of a run, on its first example at its last snapshot."""
    steps = run.snapshot_steps()
    if not steps:
        st.info(_("No snapshot yet."), icon=":material/hourglass_empty:")
        return
    experiment = run.experiment
    try:
        example = example_of(experiment, run.probe(), run.snapshot(steps[-1]), 0)
        maps = replace(map_view(experiment, example, kind=kind), query_words=())
    except ValueError as error:
        show.problem(error)
        return
    title = _("{name}, step {step}", name=name, step=f"{steps[-1]:,}")
    style = GridStyle(chosen=(0, 0), theme=state.theme(), title=title)
    head_grid(maps, style, on_pick=lambda _layer, _head: None, key=f"bug-heads-{name}-{kind}")


def _answers(played: Round) -> None:
    if not played.answers:
        st.info(_("Run a probe first."), icon=":material/science:")
        return
    healthy, suspect = (_(arm.label) for arm in TWINS.arms)
    with st.container(height=400, border=False, key="bug-answers"):
        for name, answer in reversed(played.answers.items()):
            probe = PROBES[name]
            st.markdown(f"**{_(probe.question)}**")
            table = [
                (_(label), right, f"**{wrong}** ≠" if differs else wrong)
                for label, right, wrong, differs in answer
            ]
            show.facts(table, [_("measured"), healthy, suspect])
            st.caption(_(probe.healthy))


def _probes(pair: Pair, played: Round) -> None:
    is_live = comparison.is_live(pair)
    can_run = not is_live and all(run.has_checkpoint for run in pair)
    if is_live:
        st.caption(_("Probes open when both runs have finished."))
    elif not can_run:
        st.caption(_("One of the runs has no saved weights to probe."))
    name = st.selectbox(
        _("Probe"),
        list(PROBES),
        format_func=lambda name: _(PROBES[name].question),
        key=_PROBE,
        disabled=not can_run,
    )
    st.button(
        _("Run the probe again") if name in played.answers else _("Run the probe"),
        key="bug-probe-run",
        icon=":material/science:",
        disabled=not can_run,
        on_click=_queue_probe,
        args=(played,),
    )
    if played.queued:
        _run_probes(pair, played)


def _queue_probe(played: Round) -> None:
    """Queue the chosen probe, so that the next press does not lose one that is still running."""
    name = st.session_state[_PROBE]
    if name not in played.queued:
        played.queued.append(name)


def _run_probes(pair: Pair, played: Round) -> None:
    with st.spinner(_("Both models run …")):
        while played.queued:
            name = played.queued[0]
            try:
                answer = measure_pair(*pair, name)
            except ValueError as error:
                played.hint = str(_(error))
            else:
                played.answers.pop(name, None)
                played.answers[name] = answer
                st.session_state[_NEXT] = ANSWERS
            played.queued.remove(name)
    st.rerun()


def _guess(pair: Pair, played: Round) -> None:
    """Ask which mistake it is; a wrong guess gets a hint. Raises OSError."""
    healthy, twin = (run.experiment for run in pair)
    bug = bug_of(healthy, twin)
    assert bug is not None
    labels = {candidate.name: _(candidate.label) for candidate in possible(healthy)}
    with st.form("bug-guess", border=True):
        guess = st.selectbox(
            _("What is wrong with the suspect?"),
            sorted(labels, key=labels.__getitem__),
            index=None,
            format_func=labels.__getitem__,
            key=f"bug-guess-{pair[1].id}",
            placeholder=_("Name the mistake"),
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            is_named = st.form_submit_button(_("Submit"), type="primary")
            is_shown = st.form_submit_button(_("Show the answer"))
            st.caption(_score(played), width="content")
    if is_shown or (is_named and guess == bug.name):
        runs_access.reveal(pair[1], may_change=not visitors.watches(pair[1]))
        played.is_over, played.is_won, played.hint = True, not is_shown, ""
        _seen().add(bug.name)
        ticks.mark("bug")
        st.rerun()
    if is_named and guess is not None:
        if guess not in played.wrong:
            played.wrong.append(guess)
        with st.spinner(_("Comparing the guess with the suspect …")):
            why = hint(healthy, twin, BUGS[guess], tuple(played.answers))
        played.hint = _("Not “{guess}”. {hint}", guess=labels[guess], hint=_(why))
        st.rerun()
    elif is_named:
        played.hint = _("Choose a mistake from the list first.")
    if played.hint:
        st.warning(_(played.hint), icon=":material/lightbulb:")


def _score(played: Round) -> str:
    n, wrong = len(played.answers), len(played.wrong)
    return _("Probes: {n} of {par} · wrong guesses: {wrong}", n=n, par=PAR, wrong=wrong)


def _solution(pair: Pair, played: Round) -> None:
    """Show the mistake, the score, and the difference in the code."""
    healthy, twin = (run.experiment for run in pair)
    bug = bug_of(healthy, twin)
    assert bug is not None
    solution = f"**{_(bug.label)}**. {_(bug.means)}  \n{_score(played)}"
    if played.is_won:
        n = sum(each.is_won for each in st.session_state[_ROUNDS].values())
        total = _("Found in this session: {n}", n=n)
        st.success(f"{solution} · {total}", icon=":material/bug_report:")
    else:
        st.info(solution, icon=":material/visibility:")
    question = _(PROBES[bug.probe].question)
    st.caption(_("The probe that shows it: {question}", question=question))
    st.markdown(_("Generated code: − healthy, + suspect"))
    st.code(difference(healthy, twin), language="diff", height=300, wrap_lines=True)
    show.link("compare", _("Compare the two runs"), comparison.runs_query(pair))
