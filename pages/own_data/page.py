"""Own data: import, preview, save, and train on it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.i18n import _
from pages.own_data import pictures, shelf, state, texts
from pages.own_data.state import KIND
from pages.ui import show
from pages.ui import state as session
from pages.ui.address import view_link
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, run_time
from pages.ui.typed import escape
from tfm_core.data.own import kinds
from tfm_core.data.own.kinds import Proposal
from tfm_core.data.own.sets import OwnSet

VIEWS: dict[str, Any] = {"pictures": pictures, "pairs": texts, "labels": texts, "text": texts}


def page() -> None:
    show.header("own-data")
    kind = view_link.choice(_("Data"), KIND, is_labelled=False)
    view = VIEWS[kind]
    own = state.chosen(shelf.sets(kind))
    left, right = st.columns([2, 5], gap="medium")
    with left:
        draft = view.add(kind)
        shelf.rows(kind, None if draft is not None else own)
    with right:
        if draft is not None:
            view.preview(draft)
        elif own is not None and own.problem is not None:
            shelf.damaged(own)
        elif own is not None:
            _heading(own)
            _offers(own)
            view.look(own)
        else:
            view.nothing_yet()


def _heading(own: OwnSet) -> None:
    counts = {part: f"{own.counts.get(part, 0):,}" for part in ("train", "validation", "test")}
    words = _("{train} training and validation, {test} test.", **counts)
    if own.counts.get("validation"):
        words = _("{train} training, {validation} validation, {test} test.", **counts)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header(escape(own.name), anchor=False, width="content")
        st.caption(words, width="stretch")


def _offers(own: OwnSet) -> None:
    try:
        proposals = kinds.proposals(own)
    except ValueError as error:
        show.problem(error)
        return
    for column, proposal in zip(st.columns(3), proposals, strict=False):
        with column, st.container(border=True, gap="xsmall"):
            _offer(own, proposal, is_first=proposal.name == "usual")


def _offer(own: OwnSet, proposal: Proposal, *, is_first: bool) -> None:
    experiment = proposal.experiment
    time = run_time.takes_now(experiment)
    if st.button(
        _("Train: {label}", label=_(proposal.label)),
        key=f"own-train-{proposal.name}",
        type="primary" if is_first else "secondary",
        icon=":material/play_arrow:",
        width="stretch",
    ):
        run = run_actions.start(experiment, name=own.name)
        if run is not None:
            run_actions.watch(run)
    steps = f"{experiment.training.steps:,}"
    st.caption(f"**{_('{steps} steps, {time}', steps=steps, time=time)}**. {_(proposal.why)}")
    if st.button(
        _("Configure: {label}", label=_(proposal.label)),
        key=f"own-form-{proposal.name}",
        type="tertiary",
        icon=":material/tune:",
    ):
        session.set_draft(experiment.model_dump())
        session.set_current_run(None)
        st.switch_page(page_table.path_of("train"))


page()
