"""Which runs to show: by kind, by words, and a page of them at a time."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.i18n import N_, _
from pages.ui import run_words
from tfm_core.runs.run import Run

PER_PAGE = 12

_KINDS: dict[str, tuple[str, Callable[[Run], bool]]] = {
    "active": (N_("Training or waiting"), lambda run: run.status.is_active),
    "finished": (N_("Finished"), lambda run: run.status.state == "finished"),
    "early": (N_("Ended early"), lambda run: run.status.can_resume and run.problem is None),
    "recorded": (N_("Recorded"), lambda run: run.meta.recorded),
    "damaged": (N_("Damaged"), lambda run: run.damage is not None),
}


def choose(runs: list[Run]) -> list[Run]:
    """Show the filter and return the runs of the page to show, newest first."""
    kinds = {name: [run for run in runs if test(run)] for name, (_label, test) in _KINDS.items()}
    present = [name for name in kinds if kinds[name]]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input(
            _("Search"),
            key="runs-words",
            placeholder=_("name, task or model"),
            persist_state="session",
            label_visibility="collapsed",
            width=260,
        )
        kind = st.pills(
            _("Kind"),
            present,
            format_func=lambda name: _(_KINDS[name][0]),
            key="runs-kind",
            label_visibility="collapsed",
        )
    matching = [run for run in kinds.get(kind or "", runs) if not words or matches(run, words)]
    n_pages = -(-len(matching) // PER_PAGE)
    if n_pages < 2:
        return matching
    page = st.pagination(n_pages, key="runs-page") or 1
    return matching[(page - 1) * PER_PAGE : page * PER_PAGE]


def matches(run: Run, words: str) -> bool:
    """Say whether every word stands somewhere in the run's name, task or model."""
    text = f"{run.meta.name} {run_words.learns(run)} {run.meta.preset or ''}".casefold()
    return all(word in text for word in words.casefold().split())
