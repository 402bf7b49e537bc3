"""Choosing one head of a model, which the link keeps."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.i18n import _
from pages.knockouts.link import HEAD
from pages.ui.address import view_link
from tfm_core.inspect.knockouts.parts import Part, head_of, heads_of, name_of
from tfm_core.runs.run import Run

_PROBLEM = "knockouts-head-problem"


def choose_head(run: Run, off: Sequence[Part]) -> Part:
    """Let the visitor choose a head of a model; at first, one of the newest part that is off."""
    heads = {head.code: head for head in heads_of(run.experiment)}
    problem = view_link.receive(HEAD)
    requested = st.session_state[HEAD.key]
    if requested not in heads:
        if requested:
            problem = _("This model has no {part}, so it is ignored.", part=requested)
        st.session_state[HEAD.key] = head_of(run.experiment, off).code
    if problem:
        st.session_state[_PROBLEM] = (st.session_state[HEAD.key], problem)
    code = st.selectbox(
        _("Head"),
        list(heads),
        format_func=lambda one: _(name_of(heads[one])),
        key=HEAD.key,
        persist_state="session",
    )
    of_head, problem = st.session_state.get(_PROBLEM, ("", ""))
    view_link.warn(problem if of_head == code else "")  # shown until another is chosen
    view_link.say(HEAD, code)
    return heads[code]
