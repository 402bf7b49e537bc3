"""Which runs to show and in which order: by kind, by words, and a page of them at a time."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.i18n import N_, _
from pages.ui import run_words
from tfm_core.runs.run import Run
from tfm_core.runs.status import STATES

PER_PAGE = 12

_KINDS: dict[str, tuple[str, Callable[[Run], bool]]] = {
    "active": (N_("Active"), lambda run: run.status.is_active),
    "finished": (N_("Finished"), lambda run: run.status.state == "finished"),
    "early": (N_("Stopped or failed"), lambda run: run.status.can_resume and run.problem is None),
    "recorded": (N_("Recorded"), lambda run: run.meta.recorded),
    "damaged": (N_("Damaged"), lambda run: run.damage is not None),
}

_ORDERS: dict[str, tuple[str, Callable[[Run], float | str | None], bool]] = {
    # label, by what, whether the largest comes first; who has nothing to compare comes last
    "newest": (N_("Newest first"), lambda run: None, False),
    "name": (N_("Name"), lambda run: run.meta.name.casefold(), False),
    "task": (N_("Task and model"), lambda run: run_words.learns(run).casefold(), False),
    "result": (N_("Best result"), run_words.success, True),
    "loss": (N_("Lowest loss"), run_words.loss, False),
    "time": (N_("Longest training"), lambda run: run.status.seconds, True),
    "steps": (N_("Most steps"), lambda run: run.status.step, True),
    "state": (N_("State"), lambda run: STATES.index(run.status.state), False),
}


def choose(runs: list[Run]) -> list[Run]:
    """Show the filter and return the runs of the page to show, in the chosen order."""
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
        order = st.selectbox(
            _("Order"),
            list(_ORDERS),
            format_func=lambda name: _(_ORDERS[name][0]),
            key="runs-order",
            persist_state="session",
            label_visibility="collapsed",
            width=190,
        )
    matching = [run for run in kinds.get(kind or "", runs) if not words or matches(run, words)]
    matching = ordered(matching, order)
    n_pages = -(-len(matching) // PER_PAGE)
    if n_pages < 2:
        return matching
    page = st.pagination(n_pages, key="runs-page") or 1
    return matching[(page - 1) * PER_PAGE : page * PER_PAGE]


def matches(run: Run, words: str) -> bool:
    """Say whether every word stands somewhere in the run's name, task or model."""
    text = f"{run.meta.name} {run_words.learns(run)} {run.meta.preset or ''}".casefold()
    return all(word in text for word in words.casefold().split())


def ordered(runs: list[Run], order: str) -> list[Run]:
    """Return runs in an order; those of which nothing is known come last, as they stood."""
    _label, by, is_falling = _ORDERS[order]
    keyed = [(None if run.problem and order != "name" else by(run), run) for run in runs]
    known = [(key, run) for key, run in keyed if key is not None and key == key]
    rest = [run for key, run in keyed if key is None or key != key]
    known.sort(key=lambda pair: pair[0], reverse=is_falling)
    return [*(run for _key, run in known), *rest]
