"""Which run a page shows: the current one where the page can use it, else the newest that fits.

One that is shown because none is chosen is named in the address, and the page says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import streamlit as st

from pages.i18n import _
from pages.ui import recorded, runs_access, show, state, visitors
from pages.ui.typed import escape
from tfm_core.config import Experiment
from tfm_core.runs.run import Run


def current() -> Run | None:
    """Return the current run, fitting or not; None where there is none or it is damaged."""
    run_id = state.current_run_id()
    run = None if run_id is None else runs_access.store().get(run_id)
    return None if run is None or run.problem is not None else run


def found(fits: Callable[[Experiment], bool], recorded_first: str = "") -> Run | None:
    """Return the current run where it fits, else the newest finished one that does, else any.

    recorded_first: the recorded run that this page prefers to other recorded ones.
    """
    run = current()
    if run is not None and fits(run.experiment):
        return run
    ready = able(fits)
    finished = [run for run in ready if run.status.state == "finished"]
    finished.sort(key=lambda run: (run.meta.recorded, run.id != recorded_first))
    first = next(iter([*finished, *ready]), None)
    if first is not None and state.current_run_id() is None:
        state.show_unasked(first.id)
    return first


def first_to_show(ready: Iterable[Run], recorded_first: str) -> Run | None:
    """Return the run to show where none is chosen: the visitor's newest, else a recorded one.

    ready: the newest first. recorded_first: the recorded run that is better than others.
    """
    able = list(ready)
    own = [run for run in able if not run.meta.recorded]
    best = [run for run in able if run.id == recorded_first]
    first = next(iter([*own, *best, *able]), None)
    if first is not None:
        state.show_unasked(first.id)
    return first


def pick(
    label: str, ready: Sequence[Run], *, key: str, describe: Callable[[Run], str], about: str
) -> Run:
    """Draw the choice of one of the runs; the one that is picked is the current run from then on.

    ready: at least one, the first to show first. about: which runs these are.
    """
    by_id = {run.id: run for run in ready}
    current = state.current_run_id()
    if current in by_id or st.session_state.get(key) not in by_id:
        st.session_state[key] = current if current in by_id else ready[0].id
    picked = st.selectbox(
        label,
        list(by_id),
        format_func=lambda run_id: describe(by_id[run_id]),
        key=key,
        help=about,
        on_change=lambda: state.set_current_run(st.session_state[key]),
    )
    if current is None:
        state.show_unasked(picked)
    return by_id[picked]


def say(run: Run) -> None:
    """Say in a line which run this is where the page shows it because none is chosen."""
    if not state.is_unasked(run.id):
        return
    words = _("**{name}**, the newest run that this page can show.")
    if run.meta.recorded:
        words = _("**{name}**, a recorded run: you have not trained one yet.")
        if any(not one.meta.recorded for one in visitors.listed()):
            words = _("**{name}**, a recorded run: none of yours fits this page.")
    st.caption(f"{recorded.badge(run)} {words.format(name=escape(run.meta.name))}".strip())


def able(fits: Callable[[Experiment], bool]) -> list[Run]:
    """Return the runs with weights that fit, the newest first."""
    return [
        run
        for run in visitors.at_hand()
        if run.problem is None and run.has_checkpoint and fits(run.experiment)
    ]


def no_weights(run: Run, *, key: str) -> None:
    """Say that a run has no weights: not yet, with a button to look again, or not at all."""
    name = run.meta.name
    if not run.status.is_active:
        show.problem(_("“{name}” ended without saving weights.", name=name))
        return
    words = _("“{name}” has not saved weights yet.", name=escape(name))
    st.info(words, icon=":material/hourglass_empty:")
    st.button(_("Reload"), icon=":material/refresh:", key=f"{key}-look-again")
