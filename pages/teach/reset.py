"""Reset for the next class: what goes, said first, and done at a second press."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.lessons import pupils
from pages.app.runs import runs_access
from pages.i18n import _, ngettext, paragraph
from pages.teach import reading
from tfm_core.lessons import attempts, catalogue
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

_PATIENCE = 10.0  # seconds for runs to stop


@dataclass(frozen=True, slots=True)
class Left:
    """What a class leaves: the lessons with attempts, how many pupils, and their runs' ids."""

    lessons: tuple[str, ...]
    n_pupils: int
    runs: tuple[str, ...]


def left() -> Left:
    """Return what the class has left on the server."""
    by_lesson = {name: attempts.attempts(name) for name in catalogue.catalogue().lessons}
    every = [one for many in by_lesson.values() for one in many]
    return Left(
        tuple(name for name, many in by_lesson.items() if many),
        len({one.browser for one in every}),
        tuple(run.id for run in _runs(dict.fromkeys(run for one in every for run in one.runs))),
    )


def control() -> None:
    """Draw the control; who presses it reads first what it does."""
    found = left()
    label = _("Reset for the next class")
    with st.popover(label, icon=":material/restart_alt:", disabled=not found.n_pupils):
        st.markdown(paragraph("class/reset"))
        pupils = ngettext("{n} pupil", "{n} pupils", found.n_pupils, n=found.n_pupils)
        runs = ngettext("{n} run", "{n} runs", len(found.runs), n=len(found.runs))
        st.button(
            _("Remove {pupils} and {runs}", pupils=pupils, runs=runs),
            type="primary",
            key="class-reset",
            on_click=reset,
        )


def reset() -> None:
    """Remove all attempts, and move their runs to the trash."""
    if not pupils.is_teacher():
        return
    found, store = left(), runs_access.store()
    for run in _runs(found.runs):
        if run.status.is_active:
            with contextlib.suppress(StudentError, OSError):
                run.request("stop")
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends and any(run.status.is_alive for run in _runs(found.runs)):
        time.sleep(0.1)
    n_left = 0
    for run in _runs(found.runs):
        try:
            store.delete(run.id, by=visitors.visitor().owner)
        except (StudentError, OSError):
            n_left += 1
    if n_left:
        words = ngettext(
            "{n} run has not stopped yet. Reset again in a moment.",
            "{n} runs have not stopped yet. Reset again in a moment.",
            n_left,
            n=n_left,
        )
        state.notify(words)
        return
    for lesson in found.lessons:
        attempts.reset(lesson)
        reading.forget(lesson)
    state.notify(_("Ready for the next class. The Runs page can restore the runs."))


def _runs(run_ids: Iterable[str]) -> list[Run]:
    found = []
    for run_id in run_ids:
        with contextlib.suppress(RunNotFound):
            run = runs_access.store().get(run_id)
            if not run.meta.recorded:
                found.append(run)
    return found
