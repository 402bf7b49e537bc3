"""Own data: import, preview, save, train on it, remove and restore it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from pages.app import show
from pages.app import state as session
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.runs import run_actions, run_time, runs_access
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext
from pages.train.own_data import report, upload
from tfm_core.data.user_data import kinds
from tfm_core.data.user_data import sets as own_data
from tfm_core.data.user_data.sets import UserSet
from tfm_core.runs import own_sets
from tfm_core.runs.run import Run

_MAX_NAMES = 5


def page() -> None:
    show.header("own-data")
    settings = view.ask(upload.OwnData, upload.SCOPE)
    kind, own = settings.kind, upload.shown_set(settings, _sets(settings.kind))
    left, right = st.columns([5, 2], gap="medium")
    with right:  # drawn first: the left shows what is added here
        unsaved = upload.add(kind)
        _rows(kind, None if unsaved is not None else own)
    if own is None:
        unsaved = unsaved or upload.example(kind)
    with left:
        if unsaved is not None:
            st.header(_("Read: {name}", name=escape(unsaved.name)), anchor=False)
            report.preview(unsaved)
        elif own is not None and own.problem is not None:
            st.header(escape(own.name), anchor=False)
            show.problem(
                N_("This data set is damaged: {what}. Remove and add it again.", what=own.problem)
            )
        elif own is not None:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.header(escape(own.name), anchor=False, width="content")
                st.caption(report.counts(own.counts), width="stretch")
            _offers(own)
            report.saved(own)


def _offers(own: UserSet) -> None:
    """Offer trainings of three sizes: one press starts the chosen one."""
    try:
        proposals = {proposal.name: proposal for proposal in kinds.proposals(own)}
    except ValueError as error:
        show.problem(error)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        labels = {name: proposal.label for name, proposal in proposals.items()}
        look = {"label_visibility": "collapsed"}
        offered = view.choice(N_("Training"), labels, "usual", of=own.kind, look=look)
        proposal = proposals[view.one(offered, "proposal", upload.SCOPE)]
        experiment = proposal.experiment
        is_started = st.button(
            _("Train"),
            key=f"own-train-{proposal.name}",
            type="primary",
            icon=":material/play_arrow:",
        )
        is_edited = st.button(
            _("Configure"), key=f"own-form-{proposal.name}", type="tertiary", icon=":material/tune:"
        )
    steps, time = f"{experiment.trained.steps:,}", run_time.estimate_text_now(experiment)
    st.caption(f"**{_('{steps} steps, {time}', steps=steps, time=time)}**. {_(proposal.why)}")
    if is_started:
        name = _(own.name) if own.is_example else own.name
        run = run_actions.start(experiment, name=name)
        if run is not None:
            run_actions.watch(run)
    if is_edited:
        run_actions.configure(experiment)


def _sets(kind: str) -> list[UserSet]:
    """Return the visible sets of a kind, newest first, then the built-in ones."""
    saved = own_sets.listed(runs_access.store(), visitors.visitor())
    return [own for own in [*saved, *own_data.examples()] if own.kind in (kind, "")]


def _rows(kind: str, shown: UserSet | None) -> None:
    st.header(_("Data sets"), anchor=False)
    shown_sets = _sets(kind)
    used_by = own_sets.runs_by_set(runs_access.store(), visitors.visitor())
    with st.container(gap="xsmall"):
        if not shown_sets:
            st.caption(_("None yet."))
        for own in shown_sets:
            _row(own, used_by.get(own.id, ()), is_shown=shown is not None and own.id == shown.id)
        removed = own_sets.removed(runs_access.store(), visitors.visitor())
        for own in [own for own in removed if own.kind == kind][:3]:
            _removed_row(own, used_by.get(own.id, ()))


def _row(own: UserSet, runs: Sequence[Run], *, is_shown: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            escape(own.name),
            key=f"own-look-{own.id}",
            type="secondary" if is_shown else "tertiary",
            icon=":material/check:" if is_shown else ":material/database:",
            disabled=own.problem is not None,
            help=None if own.problem is None else escape(own.problem),
            on_click=upload.begin_with,
            args=(own.id,),
        )
        if own.problem is not None:
            facts = _("damaged")
        else:
            n = sum(own.counts.values())
            facts = show.joined(
                ngettext("{n:,} example", "{n:,} examples", n, n=n),
                show.size(own.n_bytes),
                _("built in") if own.is_example else show.ago(own.kept) if own.kept else "",
            )
        st.caption(facts, width="stretch")
        if not own.is_example:
            st.button(
                _("Remove {name}", name=escape(own.name)),
                key=f"own-remove-{own.id}",
                icon=":material/delete:",
                type="tertiary",
                help=_used_by(runs) or None,
                on_click=partial(_change, own_sets.remove, own.id, show_next=""),
            )


def _used_by(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    names = ", ".join(f"“{escape(run.meta.name)}”" for run in runs[:_MAX_NAMES])
    more = len(runs) - _MAX_NAMES
    if more > 0:
        names = _("{names} and {n} more", names=names, n=more)
    return _("Used by {names}, which could not train further.", names=names)


def _removed_row(own: UserSet, runs: Sequence[Run]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        removed = _("Removed *{name}*.", name=escape(own.name))
        st.caption(f"{removed} {_used_by(runs)}".strip())
        st.button(
            _("Undo: {name}", name=escape(own.name)),
            key=f"own-undo-{own.id}",
            icon=":material/undo:",
            type="tertiary",
            on_click=partial(_change, own_sets.undo, own.id, show_next=own.id),
        )


def _change(action: Callable[..., object], set_id: str, *, show_next: str) -> None:
    """Remove or restore a set, then show another one."""
    try:
        action(set_id, store=runs_access.store(), visitor=visitors.visitor())
    except (ValueError, OSError) as error:
        session.notify(_(error))
        return
    upload.show_set(show_next)


page()
