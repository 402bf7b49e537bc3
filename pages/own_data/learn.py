"""Train on it: what is proposed for a set, how long it takes here, and a button to start each."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import page_table, run_actions, run_time, show, state
from pages.ui.typed import escape
from tfm_core.data.own import kinds
from tfm_core.data.own.proposal import Proposal
from tfm_core.data.own.sets import OwnSet


def heading(own: OwnSet) -> None:
    counts = own.counts
    words = (
        _("{train} training, {validation} validation, {test} test.")
        if counts.get("validation")
        else _("{train} training and validation, {test} test.")
    )
    numbers = {part: f"{counts.get(part, 0):,}" for part in ("train", "validation", "test")}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header(escape(own.name), anchor=False, width="content")
        st.caption(words.format(**numbers), width="stretch")


def offers(own: OwnSet) -> None:
    try:
        found = kinds.proposals(own)
    except ValueError as error:
        show.problem(error)
        return
    for column, proposal in zip(st.columns(3), found, strict=False):
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
        run = run_actions.begin(experiment, name=own.name)
        if run is not None:
            run_actions.watch(run)
    steps = f"{experiment.training.steps:,}"
    st.caption(f"**{_('{steps} steps, {time}', steps=steps, time=time)}**. {_(proposal.why)}")
    if st.button(
        _("Configure: {label}", label=_(proposal.label)),
        key=f"own-form-{proposal.name}",
        type="tertiary",
        icon=":material/tune:",
        help=_("Opens Train with these settings."),
    ):
        state.set_draft(experiment.model_dump())
        state.set_current_run(None)
        st.switch_page(page_table.path_of("train"))
