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
from tfm_core.data.own.sets import OwnSet

VIEWS: dict[str, Any] = {"pictures": pictures, "pairs": texts, "labels": texts, "text": texts}


def page() -> None:
    show.header("own-data")
    kind = view_link.choice(_("Data"), KIND, is_labelled=False)
    view = VIEWS[kind]
    own = state.shown_set(shelf.sets(kind))
    left, right = st.columns([5, 2], gap="medium")
    with right:  # drawn first: what is added is shown on the left
        draft = view.add(kind)
        shelf.rows(kind, None if draft is not None else own)
    with left:
        if draft is not None:
            view.preview(draft)
        elif own is not None and own.problem is not None:
            shelf.damaged(own)
        elif own is not None:
            _heading(own)
            _offers(own)
            view.saved(own)
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
    """Offer trainings of three sizes: one press starts the chosen one."""
    try:
        proposals = {proposal.name: proposal for proposal in kinds.proposals(own)}
    except ValueError as error:
        show.problem(error)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        chosen = st.segmented_control(
            _("Training"),
            list(proposals),
            format_func=lambda name: _(proposals[name].label),
            default="usual",
            required=True,
            key=f"own-proposal-{own.kind}",
            label_visibility="collapsed",
            persist_state="session",
        )
        proposal = proposals[chosen or "usual"]
        experiment = proposal.experiment
        is_started = st.button(
            _("Train"),
            key=f"own-train-{proposal.name}",
            type="primary",
            icon=":material/play_arrow:",
        )
        is_edited = st.button(
            _("Configure"),
            key=f"own-form-{proposal.name}",
            type="tertiary",
            icon=":material/tune:",
            help=_("Change its settings on Train."),
        )
    steps, time = f"{experiment.training.steps:,}", run_time.takes_now(experiment)
    st.caption(f"**{_('{steps} steps, {time}', steps=steps, time=time)}**. {_(proposal.why)}")
    if is_started:
        name = _(own.name) if own.is_example else own.name
        run = run_actions.start(experiment, name=name)
        if run is not None:
            run_actions.watch(run)
    if is_edited:
        session.set_draft(experiment.model_dump())
        session.set_current_run(None)
        st.switch_page(page_table.path_of("train"))


page()
