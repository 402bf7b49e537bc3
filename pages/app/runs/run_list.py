"""Runs as rows: what they are, how far they are, and what can be done with them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.runs import run_actions, run_words, runs_access, shown_run
from pages.app.runs.run_buttons import RunButtons
from pages.app.runs.run_words import sparkline
from pages.app.typed import escape
from pages.i18n import _
from tfm_core.runs.run import Run
from tfm_core.runs.status import State

logger = logging.getLogger(__name__)

TICK = 2.0
"""Seconds between two looks at a run that is training."""

_MAX_OF_NOTE = 140  # characters that a row shows
_NO_BREAKS = {ord(" "): "\u00a0", ord("-"): "\u2011"}  # a number and its unit, a date: one line


def row(
    run: Run, *, menu: bool, apart: str = "", before: Callable[[Run], None] | None = None
) -> None:
    """Draw a run with its buttons; ``menu`` adds steering, repeating, labels and delete.

    A broken run does not hide others. apart: text after its name. before: draws what precedes it.
    """
    with guarded(run):
        status = run.status
        with st.container(border=True, key=f"run-{run.id}"):
            facts, buttons = st.columns([3, 1] if menu else [6, 1], vertical_alignment="center")
            ticks = run.problem is None and status.is_active
            with facts, st.container(horizontal=True, vertical_alignment="center", gap="small"):
                if before is not None:
                    before(run)
                with st.container(gap="xxsmall", width="stretch"):
                    drawn = st.fragment(_facts, run_every=TICK if ticks else None)
                    drawn(run, status.state, apart)
            with buttons, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
                RunButtons(run, status, is_row=True).row(has_menu=menu)


@contextmanager
def guarded(run: Run) -> Iterator[None]:
    """Show a message if a run cannot be drawn, and log why."""
    try:
        yield
    except Exception:
        logger.exception("The run %s could not be drawn.", run.id)
        message = _("The run {id} cannot be shown; see the server's log.", id=run.id)
        st.caption(f":material/broken_image: {escape(message)}")


def gone(run: Run) -> None:
    """Draw a row in place of a run that was just deleted, to undo that."""
    until = runs_access.store().restorable_until(run.id)
    if until is None:  # its room was needed, or it was brought back meanwhile
        return
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"gone-{run.id}"
    ):
        message = _(
            "Deleted **{name}**. Undo until {time}, or until the space is needed.",
            name=escape(run.meta.name),
            time=show.clock(until),
        )
        st.markdown(message, width="stretch")
        st.button(
            f"{_('Undo')} :gray[{escape(run.meta.name)}]",  # the name for screen readers
            key=f"undo-{run.id}",
            icon=":material/undo:",
            on_click=run_actions.undelete,
            args=(run.id,),
        )


def _facts(run: Run, drawn_as: State, apart: str) -> None:
    with guarded(run):
        _say(run, drawn_as, apart)


def _say(run: Run, drawn_as: State, apart: str) -> None:
    name = f"**{escape(run.meta.name)}**" + (f" {escape(apart)}" if apart else "")
    if run.problem is not None:
        st.markdown(f"{name}  {run_words.badge_of(run)}")
        st.caption(escape(_(run.problem)))
        return
    status, labels = run.status, run.labels
    if status.state != drawn_as:
        state.draw_anew()  # once: the row gets other buttons, and perhaps no longer ticks
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        sparkline(run)
        with st.container(width="stretch", gap="xxsmall"):
            marks = [visitors.badge(run)]
            if labels.group is not None:
                marks.append(f":blue-badge[:material/folder: {escape(labels.group)}]")
            marks += [f":gray-badge[:material/sell: {escape(tag)}]" for tag in labels.tags]
            if not run.meta.recorded:  # these are finished, and their names say where they are from
                marks = [run_words.badge_of(run), shown_run.origin_badge(run), *marks]
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                if st.button(name, key=f"open-{run.id}", type="tertiary"):
                    run_actions.watch(run)
                if any(marks):
                    st.markdown(" ".join(filter(None, marks)), width="content")
            st.caption(_facts_words(run))
    if note := labels.note:
        line = " ".join(note.split())
        line = line if len(line) <= _MAX_OF_NOTE else f"{line[:_MAX_OF_NOTE].rstrip()} …"
        st.caption(f":material/edit_note: {escape(line)}", help=escape(note))
    for sentence in (run_words.reason(run), run.damage, shown_run.origin_words(run)):
        if sentence:
            st.caption(escape(_(sentence)))


def _facts_words(run: Run) -> str:
    """Return task, model, progress, result, time and age; the task only if the name lacks it."""
    experiment, status = run.experiment, run.status
    task = _(experiment.task.facts.label)
    parts = [
        "" if run.meta.name.startswith(task) else escape(task),
        escape(run_words.model(run)),
        run_words.progress(status).translate(_NO_BREAKS),
        escape(run_words.result(run)),
        show.duration(status.seconds).translate(_NO_BREAKS) if status.seconds else "",
        show.ago(run.meta.created).translate(_NO_BREAKS),
    ]
    return " · ".join(filter(None, parts))
