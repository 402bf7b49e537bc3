"""The saved data sets: view, remove, restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from pages.i18n import N_, _, ngettext
from pages.own_data import state
from pages.ui import show
from pages.ui import state as session
from pages.ui.accounts import visitors
from pages.ui.navigation import ticks
from pages.ui.runs import runs_access
from pages.ui.typed import escape
from tfm_core import settings
from tfm_core.data.own import sets as own_data
from tfm_core.data.own.sets import MAX_NAME, OwnSet, Prepared
from tfm_core.runs import own_sets
from tfm_core.runs.run import Run

_MAX_NAMES = 5


def sets(kind: str) -> list[OwnSet]:
    """Return the visible sets of a kind, newest first, then the built-in ones."""
    saved = own_sets.listed(runs_access.store(), visitors.visitor())
    return [own for own in [*saved, *own_data.examples()] if own.kind in (kind, "")]


def rows(kind: str, shown: OwnSet | None) -> None:
    st.header(_("Data sets"), anchor=False)
    shown_sets = sets(kind)
    used_by = own_sets.runs_by_set(runs_access.store(), visitors.visitor())
    with st.container(gap="xsmall"):
        if not shown_sets:
            st.caption(_("None yet."))
        for own in shown_sets:
            _row(own, used_by.get(own.id, ()), is_shown=shown is not None and own.id == shown.id)
        removed = own_sets.removed(runs_access.store(), visitors.visitor())
        for own in [own for own in removed if own.kind == kind][:3]:
            _removed_row(own, used_by.get(own.id, ()))


def damaged(own: OwnSet) -> None:
    st.header(escape(own.name), anchor=False)
    words = N_("This data set is damaged: {what}. Remove and add it again.", what=own.problem or "")
    show.problem(words)


def encoding_picker(label: str, encodings: Mapping[str, str], guess: str, *, key: str) -> None:
    """Ask for an encoding; the guess is preselected, if there is one."""
    names = list(encodings)
    st.selectbox(
        label,
        names,
        index=names.index(guess) if guess in names else None,
        format_func=lambda name: _(encodings[name]),
        key=key,
        width=300,
    )


def download(label: str, file: Callable[[], bytes | str], *, name: str, mime: str) -> None:
    st.download_button(
        label,
        file,
        file_name=name,
        mime=mime,
        icon=":material/download:",
        on_click="ignore",
    )


def save_row(
    kind: str, proposed: str, prepare: Callable[[str], Prepared], *, can_save: bool = True
) -> None:
    """Ask for a name and offer to save a set."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.text_input(
            _("Data set name"),
            key=state.name_key(kind, proposed[:MAX_NAME]),
            max_chars=MAX_NAME,
            width=320,
        )
        st.button(
            _("Save data set"),
            type="primary",
            icon=":material/save:",
            key="own-data-keep",
            disabled=not can_save,
            on_click=lambda: _keep(lambda: prepare((name or "").strip())),
        )


def _keep(prepare: Callable[[], Prepared]) -> None:
    """Save a set and show it; if that fails, say why and keep the upload."""
    try:
        own = own_sets.keep(
            prepare(),
            store=runs_access.store(),
            visitor=visitors.visitor(),
            settings=settings.read(),
            told_of=_went,
        )
    except (ValueError, OSError) as error:
        session.notify(_(error))
        return
    state.begin_anew()
    state.show_set(own.id)
    ticks.mark()


def _went(n: int) -> None:
    words = ngettext(
        "Deleted the oldest finished run to make room.",
        "Deleted the {n} oldest finished runs to make room.",
        n,
        n=n,
    )
    session.notify(words)


def _row(own: OwnSet, runs: Sequence[Run], *, is_shown: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            escape(own.name),
            key=f"own-look-{own.id}",
            type="secondary" if is_shown else "tertiary",
            icon=":material/check:" if is_shown else ":material/database:",
            disabled=own.problem is not None,
            help=None if own.problem is None else escape(own.problem),
            on_click=_show,
            args=(own.id,),
        )
        st.caption(_facts(own), width="stretch")
        if not own.is_example:
            st.button(
                _("Remove {name}", name=escape(own.name)),
                key=f"own-remove-{own.id}",
                icon=":material/delete:",
                type="tertiary",
                help=_used_by(runs) or None,
                on_click=partial(_change, own_sets.remove, own.id, show_next=""),
            )


def _facts(own: OwnSet) -> str:
    n = sum(own.counts.values())
    if own.problem is not None:
        return _("damaged")
    whose = _("built in") if own.is_example else show.ago(own.kept) if own.kept else ""
    parts = [ngettext("{n:,} example", "{n:,} examples", n, n=n), show.size(own.n_bytes), whose]
    return " · ".join(part for part in parts if part)


def _used_by(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    names = ", ".join(f"“{escape(run.meta.name)}”" for run in runs[:_MAX_NAMES])
    more = len(runs) - _MAX_NAMES
    if more > 0:
        names = _("{names} and {n} more", names=names, n=more)
    return _("Used by {names}, which could not train further.", names=names)


def _removed_row(own: OwnSet, runs: Sequence[Run]) -> None:
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


def _show(set_id: str) -> None:
    state.begin_anew()
    state.show_set(set_id)


def _change(work: Callable[..., object], set_id: str, *, show_next: str) -> None:
    """Remove a set or undo that, then show another one."""
    try:
        work(set_id, store=runs_access.store(), visitor=visitors.visitor())
    except (ValueError, OSError) as error:
        session.notify(_(error))
        return
    state.show_set(show_next)
