"""Runs that were trained to be compared: which group of them a page shows, and whether it ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import streamlit as st

from pages.i18n import _, ngettext
from tfm_core.runs.run import Run

Group = TypeVar("Group")

RUNS_QUERY = "runs"
"""What the address of the page that compares calls the runs."""

TICK = 2.0
"""Seconds between two looks at runs that train."""


def of(runs: Iterable[Run]) -> dict[str, str]:
    """Return the query with which the page ``compare`` opens on these runs."""
    return {RUNS_QUERY: ",".join(dict.fromkeys(run.id for run in runs))}


def picked(groups: Sequence[Group], name_of: Callable[[Group], str], *, key: str) -> Group:
    """Return one of the groups, the newest first; ask which where there are several."""
    index = 0
    if len(groups) > 1:
        names = [name_of(group) for group in groups]
        index = st.selectbox(
            _("Comparison"), range(len(groups)), format_func=names.__getitem__, key=key
        )
    return groups[index or 0]


def mean_words(name: str, n_drawn: int, n_runs: int) -> str:
    """Return the name of the mean line of a configuration with several seeds.

    n_drawn: seeds that have a curve. n_runs: seeds that were asked for.
    """
    if n_drawn < 2:
        words = _("{name}: {n} of {n_runs} seeds")
    elif n_drawn < n_runs:
        words = _("{name}: mean ± sd of {n} of {n_runs} seeds")
    else:
        words = _("{name}: mean ± sd of {n} seeds")
    return words.format(name=name, n=n_drawn, n_runs=n_runs)


def is_live(runs: Iterable[Run]) -> bool:
    """Return whether one of the runs still trains, or waits to."""
    return any(run.status.is_active for run in runs)


def progress(runs: Iterable[Run]) -> None:
    """Say how many of the runs are still to come, in a place that stays when they are done."""
    states = [run.status for run in runs]
    n_left = sum(status.is_active for status in states)
    n_waiting = sum(status.state == "queued" for status in states)
    with st.container():
        if n_waiting:
            words = ngettext(
                "{n} run is waiting; its curve appears here when it starts.",
                "{n} runs are waiting; their curves appear here when they start.",
                n_waiting,
            )
            st.caption(":material/hourglass_empty: " + words.format(n=n_waiting))
        elif n_left:
            words = ngettext("{n} run is still training.", "{n} runs are still training.", n_left)
            st.caption(":material/hourglass_empty: " + words.format(n=n_left))
        else:
            st.caption(":material/flag: " + _("All {n} runs have finished.", n=len(states)))
