"""Disk space of the runs, the trash, and undoing a deletion.

A run deleted just now keeps its row in the list, with an undo button, so that nothing moves under
the pointer; an earlier one has a line below the list.
"""

from __future__ import annotations

import os

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.runs import run_actions, run_list, runs_access
from pages.i18n import _, ngettext
from tfm_core import settings
from tfm_core.runs.disk import quota
from tfm_core.runs.disk.failures import obstacle
from tfm_core.runs.disk.quota import Bounds, DiskUse
from tfm_core.runs.run import Run


def storage_problem() -> None:
    root = runs_access.store().root
    problem = obstacle(root) if os.path.isdir(root) else None
    if problem is not None:
        show.problem(problem)


def disk_line() -> None:
    """Summarise disk use; on a public server only the rule that concerns visitors."""
    store, bounds = runs_access.store(), Bounds.of(settings.read())
    if not visitors.visitor().may_change_all:
        if bounds != Bounds():
            st.caption(_rule())
        return
    usage = quota.disk_use(store.root, store.kept(), bounds)
    if not usage.n_runs and not usage.n_deleted:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="room-line"):
        words = [_usage_words(usage), *([] if bounds == Bounds() else [_rule()])]
        st.caption(" ".join(words), width="stretch" if usage.n_deleted else "content")
        if usage.n_deleted:
            st.button(
                _("Empty trash"),
                key="empty-trash",
                icon=":material/delete_forever:",
                type="tertiary",
                help=_("Deletes these runs for good."),
                on_click=run_actions.empty_trash,
            )


def _usage_words(usage: DiskUse) -> str:
    words = ngettext(
        "{n} run takes {size}; {free} are free.",
        "{n} runs take {size}; {free} are free.",
        usage.n_runs,
        n=f"{usage.n_runs:,}",
        size=show.size(usage.runs),
        free=show.size(usage.free),
    )
    if not usage.n_deleted:
        return words
    trash = ngettext(
        "{n} deleted run takes {size}.",
        "{n} deleted runs take {size}.",
        usage.n_deleted,
        n=f"{usage.n_deleted:,}",
        size=show.size(usage.deleted),
    )
    return f"{words} {trash}"


def _rule() -> str:
    return _("The oldest finished run is deleted when space runs out.")


def with_deleted(runs: list[Run]) -> list[Run]:
    """Return the runs, with those deleted since the page was opened in their old places."""
    shown = list(runs)
    deleted_ids = set(state.deleted_runs())
    for run in _deleted():
        if run.id in deleted_ids:
            later = [
                at
                for at, other in enumerate(shown)
                if other.meta.recorded or other.meta.created < run.meta.created
            ]
            shown.insert(min(later, default=len(shown)), run)
    return shown


def deleted_ids() -> set[str]:
    return {run.id for run in _deleted()}


def undo_button() -> None:
    deleted_ids = set(state.deleted_runs())
    earlier = [run for run in _deleted() if run.id not in deleted_ids]
    if earlier:
        run_list.gone(earlier[0])


def _deleted() -> tuple[Run, ...]:
    return runs_access.store().deleted_by(visitors.visitor().owner)
