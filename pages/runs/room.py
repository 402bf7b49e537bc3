"""Room: what the runs take of the disk, what is free, and the trash to empty."""

from __future__ import annotations

import os

import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import run_actions, runs_access, show, visitors
from tfm_core.runs import settings
from tfm_core.runs.disk import quota
from tfm_core.runs.disk.failures import obstacle
from tfm_core.runs.disk.quota import Bounds, DiskUse

_LOOK_SECONDS = 5.0


def hindrance() -> None:
    """Say what keeps anything from being written; nothing where all is well."""
    root = runs_access.store().root
    found = obstacle(root) if os.path.isdir(root) else None
    if found is not None:
        show.problem(found)
    if settings.read().runs_url is not None:
        _elsewhere()


@st.fragment(run_every=_LOOK_SECONDS)
def _elsewhere() -> None:
    """Say why runs are not shared with other servers just now; nothing where they are."""
    words = runs_access.trouble_elsewhere()
    if words is not None:
        show.problem(words)


def line() -> None:
    """Say in one line how much room there is; on a public server only what concerns a visitor."""
    store, bounds = runs_access.store(), Bounds.of(settings.read())
    if not visitors.visitor().is_admin:
        if bounds != Bounds():
            st.caption(_rule())
        return
    found = quota.disk_use(store.root, store.kept(), bounds)
    if not found.n_runs and not found.n_deleted:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="room-line"):
        words = [_taken(found), *([] if bounds == Bounds() else [_rule()])]
        st.caption(" ".join(words), width="stretch" if found.n_deleted else "content")
        if found.n_deleted:
            st.button(
                _("Empty the trash"),
                key="empty-trash",
                icon=":material/delete_forever:",
                type="tertiary",
                help=_("Deleted runs cannot be restored after that."),
                on_click=run_actions.empty_trash,
            )


def _taken(found: DiskUse) -> str:
    runs, free = show.size(found.runs), show.size(found.free)
    words = ngettext(
        "{n} run takes {size}; {free} are free.",
        "{n} runs take {size}; {free} are free.",
        found.n_runs,
        n=f"{found.n_runs:,}",
        size=runs,
        free=free,
    )
    if not found.n_deleted:
        return words
    trash = ngettext(
        "{n} deleted run takes {size}.", "{n} deleted runs take {size}.", found.n_deleted
    )
    return f"{words} {trash.format(n=f'{found.n_deleted:,}', size=show.size(found.deleted))}"


def _rule() -> str:
    return _("When a new run needs space, the oldest finished one is deleted.")
