"""Find the bug: two runs from one seed, one of them with a mistake to measure, name and read."""

from __future__ import annotations

import streamlit as st

from pages.find_the_bug import pair as pairs
from pages.find_the_bug import verdict
from pages.find_the_bug.evidence import evidence
from pages.find_the_bug.pair import round_of
from pages.i18n import _
from pages.ui import show, state
from pages.ui.runs import comparison
from tfm_core.inspect.bugs.round import Twins


def page() -> None:
    show.header("find-the-bug")
    pair = pairs.shown()
    pairs.bar(pair)
    if pair is None:
        st.info(_("No pair here yet: train one."), icon=":material/bug_report:")
        return
    is_live = comparison.is_live((pair.healthy, pair.twin))
    st.fragment(_view, run_every=comparison.TICK if is_live else None)(pair, is_live)


def _view(pair: Twins, was_live: bool) -> None:
    is_live = comparison.is_live((pair.healthy, pair.twin))
    if was_live and not is_live:
        state.draw_anew()  # once: redrawn, it no longer polls
    played = round_of(pair)
    verdict.turn_to_answers()
    if was_live:
        comparison.progress((pair.healthy, pair.twin))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        evidence(pair, played)
    with right:
        if played.is_over:
            verdict.solution(pair, played)
        else:
            verdict.probes(pair, played)
            verdict.verdict(pair, played)


page()
