"""Ticked runs: compare or label them together."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.app.runs import comparison, run_buttons
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.runs.run import Run

_PICKED = "runs-picked"


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
        st.button(
            _("Label"),
            icon=":material/sell:",
            key="runs-label",
            on_click=run_buttons.open_labels,
            args=([run.id for run in picked],),
        )
        st.button(
            _("Clear selection"),
            key="picked-none",
            icon=":material/remove_done:",
            on_click=_ids().clear,
        )


def _ids() -> dict[str, None]:
    picked: dict[str, None] = st.session_state.setdefault(_PICKED, {})
    return picked


def _take(key: str, run_id: str) -> None:
    if st.session_state.get(key):
        _ids()[run_id] = None
    else:
        _ids().pop(run_id, None)
