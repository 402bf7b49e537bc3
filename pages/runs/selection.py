"""Ticked runs: compare, group or tag them together."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.app.accounts import visitors
from pages.app.runs import comparison, run_actions
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.runs.record.labels import MAX_GROUP, MAX_TAG, MAX_TAGS
from tfm_core.runs.run import Run

_PICKED = "runs-picked"
_GROUP, _TAGS = "picked-group", "picked-tags"


def box(run: Run) -> None:
    key = f"pick-{run.id}"
    st.session_state[key] = run.id in _ids()
    st.checkbox(
        _("Choose {name}", name=escape(run.meta.name)),
        key=key,
        label_visibility="collapsed",
        on_change=_take,
        args=(key, run.id),
        width="content",
    )


def bar(runs: Sequence[Run]) -> None:
    picked = [run for run in runs if run.id in _ids()]
    n = len(picked)
    words = ngettext("Compare {n} run", "Compare {n} runs", n, n=n) if n else _("Compare")
    if st.button(
        words,
        key="runs-compare",
        type="primary" if n > 1 else "secondary",
        disabled=not n,
        help=None if n else _("Tick runs in the list first."),
    ):
        comparison.open_comparison([run.id for run in picked])
    if n:
        with st.popover(_("Label"), icon=":material/sell:", key="runs-label"):
            _labels(picked)


def _labels(picked: Sequence[Run]) -> None:
    own = [run.id for run in picked if not run.meta.recorded and not visitors.watches(run)]
    if len(own) < len(picked):
        st.caption(_("Recorded and other visitors' runs keep their labels."))
    st.text_input(
        _("Group"), key=_GROUP, max_chars=MAX_GROUP, placeholder=_("Empty removes the group")
    )
    st.button(
        _("Set group"),
        key="picked-set-group",
        icon=":material/folder:",
        width="stretch",
        disabled=not own,
        on_click=lambda: run_actions.label(own, group=st.session_state[_GROUP]),
    )
    st.text_input(
        _("Tags"),
        key=_TAGS,
        max_chars=MAX_TAGS * (MAX_TAG + 2),
        placeholder=_("baseline, to repeat"),
    )
    st.button(
        _("Add tags"),
        key="picked-add-tags",
        icon=":material/sell:",
        width="stretch",
        disabled=not own,
        on_click=lambda: _add_tags(own),
    )
    st.button(
        _("Clear selection"),
        key="picked-none",
        icon=":material/remove_done:",
        width="stretch",
        on_click=_ids().clear,
    )


def _add_tags(own: Sequence[str]) -> None:
    run_actions.label(own, tags=[st.session_state[_TAGS]], adds_tags=True)
    st.session_state[_TAGS] = ""


def _ids() -> dict[str, None]:
    picked: dict[str, None] = st.session_state.setdefault(_PICKED, {})
    return picked


def _take(key: str, run_id: str) -> None:
    if st.session_state.get(key):
        _ids()[run_id] = None
    else:
        _ids().pop(run_id, None)
