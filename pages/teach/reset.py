"""Reset for the next class: what goes, said first, and done at a second press."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.runs import runs_access
from pages.i18n import _, ngettext, paragraph
from pages.teach import reading
from tfm_core.lessons import attempts, catalogue
from tfm_core.lessons.attempts import Attempt
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

_PATIENCE = 10.0  # seconds for runs to stop


def left() -> list[Attempt]:
    """Return what the class has left on the server, in all lessons."""
    return [one for name in catalogue.catalogue().lessons for one in attempts.attempts(name)]


def control() -> None:
    """Draw the control; who presses it reads first what it does."""
    found = left()
    n_pupils, n_runs = len({one.browser for one in found}), len(_runs(found))
    label = _("Reset for the next class")
    with st.popover(label, icon=":material/restart_alt:", disabled=not n_pupils):
        st.markdown(paragraph("class/reset"))
        pupils = ngettext("{n} pupil", "{n} pupils", n_pupils, n=n_pupils)
        runs = ngettext("{n} run", "{n} runs", n_runs, n=n_runs)
        st.button(
            _("Remove {pupils} and {runs}", pupils=pupils, runs=runs),
            type="primary",
            key="class-reset",
            on_click=reset,
        )


def reset() -> None:
    """Remove all attempts, and move their runs to the trash."""
    if not open_lesson.is_teacher():
        return
    found, store = left(), runs_access.store()
    for run in _runs(found):
        if run.status.is_active:
            with contextlib.suppress(StudentError, OSError):
                run.request("stop")
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends and any(run.status.is_alive for run in _runs(found)):
        time.sleep(0.1)
    n_left = 0
    for run in _runs(found):
        try:
            store.delete(run.id, by=visitors.visitor().owner)
        except (StudentError, OSError):
            n_left += 1
    if n_left:
        words = ngettext(
            "{n} run is still stopping. Reset again in a moment.",
            "{n} runs are still stopping. Reset again in a moment.",
            n_left,
            n=n_left,
        )
        state.notify(words)
        return
    for lesson in {one.lesson for one in found}:
        attempts.reset(lesson)
        reading.forget(lesson)
    state.notify(_("Ready for the next class. You can restore the runs on Runs."))


def _runs(found: Iterable[Attempt]) -> list[Run]:
    """Return the runs of a class that are still there."""
    runs = []
    for run_id in dict.fromkeys(run for one in found for run in one.runs):
        with contextlib.suppress(RunNotFound):
            run = runs_access.store().get(run_id)
            if not run.meta.recorded:
                runs.append(run)
    return runs
