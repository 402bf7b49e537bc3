"""Ask both models, name the mistake, and see it in the code."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from pages.find_the_bug.evidence import ANSWERS, VIEW
from pages.find_the_bug.pair import Round, end, n_won
from pages.i18n import _
from pages.ui.navigation import page_table, ticks
from pages.ui.runs import comparison
from tfm_core.config import ConfigError
from tfm_core.inspect.bugs.bugs import BUGS, bug_of, with_bug
from tfm_core.inspect.bugs.probes import PROBES
from tfm_core.inspect.bugs.round import Twins, difference, hint, measure_pair

PAR = 5
"""Probes that should do."""
_GUESS = "find-the-bug-guess"
_PROBE = "bug-probe"
_NEXT = "find-the-bug-next"  # the evidence to show next


def probes(pair: Twins, played: Round) -> None:
    is_live = pair.healthy.status.is_active or pair.twin.status.is_active
    can_run = not is_live and pair.healthy.has_checkpoint and pair.twin.has_checkpoint
    if is_live:
        st.caption(_("Probes open when both runs have finished."))
    elif not can_run:
        st.caption(_("One of the two has no weights to probe."))
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
        on_click=_request,
        args=(played,),
    )
    if played.wanted:
        _ask(pair, played)


def _request(played: Round) -> None:
    """Queue the chosen probe, so that the next press does not lose one that is still running."""
    name = st.session_state[_PROBE]
    if name not in played.wanted:
        played.wanted.append(name)


def _ask(pair: Twins, played: Round) -> None:
    with st.spinner(_("Both models run …")):
        while played.wanted:
            name = played.wanted[0]
            try:
                answer = measure_pair(pair, name)
            except ValueError as error:
                played.hint = str(_(error))
            else:
                played.answers.pop(name, None)
                played.answers[name] = answer
                st.session_state[_NEXT] = ANSWERS
            played.wanted.remove(name)
    st.rerun()


def turn_to_answers() -> None:
    """Switch to the answers after a probe; call it before the choice of evidence is drawn."""
    wanted = st.session_state.pop(_NEXT, None)
    if wanted is not None:
        st.session_state[VIEW] = wanted


def verdict(pair: Twins, played: Round) -> None:
    """Ask which mistake it is; a wrong guess gets a hint."""
    bug = pair.bug
    assert bug is not None
    healthy, names = pair.healthy.experiment, []
    for each in BUGS.values():
        with suppress(ConfigError, KeyError):  # a mistake that this model cannot have
            if bug_of(healthy, with_bug(healthy, each)) is not None:
                names.append(each.name)
    with st.form("bug-guess", border=True):
        guess = st.selectbox(
            _("What is wrong with the suspect?"),
            sorted(names, key=lambda name: str(_(BUGS[name].label))),
            index=None,
            format_func=lambda name: _(BUGS[name].label),
            key=f"{_GUESS}-{pair.twin.id}",
            placeholder=_("Name the mistake"),
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            is_named = st.form_submit_button(_("Submit"), type="primary")
            is_shown = st.form_submit_button(_("Show the answer"))
            st.caption(score(played), width="content")
    if is_shown or (is_named and guess == bug.name):
        end(pair, played, bug.name, is_won=not is_shown)
        ticks.mark()
        st.rerun()
    if is_named and guess is not None:
        if guess not in played.wrong:
            played.wrong.append(guess)
        with st.spinner(_("Comparing the guess with the suspect …")):
            words = hint(pair, BUGS[guess], tuple(played.answers))
        played.hint = _("Not “{guess}”. {hint}", guess=_(BUGS[guess].label), hint=_(words))
        st.rerun()
    elif is_named:
        played.hint = _("Choose a mistake from the list first.")
    if played.hint:
        st.warning(_(played.hint), icon=":material/lightbulb:")


def score(played: Round) -> str:
    n, wrong = len(played.answers), len(played.wrong)
    return _("Probes: {n} of {par} · wrong guesses: {wrong}", n=n, par=PAR, wrong=wrong)


def solution(pair: Twins, played: Round) -> None:
    """Show the mistake, the score, and the difference in the code."""
    bug = pair.bug
    assert bug is not None
    words = f"**{_(bug.label)}**. {_(bug.means)}  \n{score(played)}"
    if played.is_won:
        found = _("Found in this session: {n}", n=n_won())
        st.success(f"{words} · {found}", icon=":material/bug_report:")
    else:
        st.info(words, icon=":material/visibility:")
    probe = PROBES[bug.probe]
    st.caption(_("The probe that shows it: {question}", question=_(probe.question)))
    st.markdown(_("Generated code: − healthy, + suspect"))
    st.code(difference(pair), language="diff", height=300, wrap_lines=True)
    st.page_link(
        page_table.path_of("compare"),
        label=_("Compare the two runs"),
        icon=page_table.PAGES["compare"].icon,
        query_params=comparison.runs_query((pair.healthy, pair.twin)),
    )
