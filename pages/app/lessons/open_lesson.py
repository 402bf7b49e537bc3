"""The lesson that a session has open: from its link, with what it locks and what was done in it.

While one is open its id stands in every address, and a run starts only with the lesson's locked
settings. A preview of a teacher's file is open in the same way, but the server keeps nothing of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.address import view_link
from pages.app.runs import runs_access
from pages.i18n import _, language
from tfm_core.choices.config import Experiment
from tfm_core.lessons import attempts, catalogue
from tfm_core.lessons.attempts import Answer, Attempt
from tfm_core.lessons.checks.task import Task, Verdict, Work
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.words import LessonWords
from tfm_core.runs.process.requests import turned
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

LESSON_QUERY = "lesson"
"""What the address calls the open lesson."""
PREVIEW = "preview"
"""What the address calls a lesson that is only previewed."""

_OPEN = "open-lesson"
_PROBLEM = "open-lesson-problem"
_PREVIEWED = "open-lesson-preview"
_OWN_WORK = "open-lesson-preview-work"  # the attempt at a preview


def follow_link() -> None:
    """Open the lesson that the address names, and name the open one in the address."""
    linked = view_link.query().get(LESSON_QUERY)
    opened: str | None = st.session_state.get(_OPEN)
    if linked is None:
        st.session_state[_PROBLEM] = ""
        if current() is not None:
            view_link.put({LESSON_QUERY: opened})
    elif linked != opened:
        _open(linked)


def _open(name: str) -> None:
    """Open a lesson by its id, or note why not."""
    try:
        lesson = _find(name)
    except StudentError as error:
        st.session_state[_PROBLEM] = str(_(error))
        st.session_state[_OPEN] = None
        return
    st.session_state[_PROBLEM] = ""
    st.session_state[_OPEN] = name
    if lesson.experiment is not None:
        state.set_draft(lesson.experiment.model_dump())


def problem() -> str:
    """Return why the lesson of the link could not be opened, or ""."""
    return str(st.session_state.get(_PROBLEM, ""))


def current() -> Lesson | None:
    """Return the open lesson, if any."""
    name = st.session_state.get(_OPEN)
    if name is None:
        return None
    try:
        return _find(name)
    except StudentError:  # its file was removed meanwhile
        st.session_state[_OPEN] = None
        return None


def _find(name: str) -> Lesson:
    previewed: Lesson | None = st.session_state.get(_PREVIEWED)
    if name == PREVIEW and previewed is not None:
        return previewed
    return catalogue.lesson(name)


def words(lesson: Lesson) -> LessonWords:
    return lesson.words(language())


def leave() -> None:
    """Close the open lesson, also in the address."""
    st.session_state[_OPEN] = None
    st.session_state[_PROBLEM] = ""
    view_link.put({LESSON_QUERY: None})


def preview(lesson: Lesson) -> None:
    """Open a lesson of a file, for this session only."""
    st.session_state[_PREVIEWED] = lesson
    st.session_state[_OWN_WORK] = Attempt(lesson.id, visitors.visitor().owner)
    _open(PREVIEW)
    view_link.put({LESSON_QUERY: PREVIEW})


def is_preview() -> bool:
    return st.session_state.get(_OPEN) == PREVIEW


def query() -> dict[str, str]:
    """Return what a link within the open lesson says besides."""
    name = st.session_state.get(_OPEN)
    return {} if name is None else {LESSON_QUERY: str(name)}


def lock(path: str) -> str:
    """Return why the open lesson locks a setting, or ""."""
    lesson = current()
    if lesson is None or not lesson.locks(path):
        return ""
    return _("Locked by the lesson “{title}”.", title=words(lesson).title)


def asks_for(path: str) -> bool:
    """Return whether the open lesson asks for a setting, so that nobody may give it away."""
    lesson = current()
    return lesson is not None and lesson.experiment is not None and path in lesson.open


MAX_SHOWN = 6
"""Open settings that Train shows by themselves; with more it shows all settings."""


def draw_locks() -> None:
    """Say what the open lesson locks, if it does."""
    lesson, few = current(), few_open()
    if lesson is None or lesson.experiment is None:
        return
    if few:
        labels = ", ".join(f"**{_(lesson.labels.get(path, path))}**" for path in few)
        words = _("This lesson locks all settings but {settings}.", settings=labels)
    else:
        some, every = _("This lesson locks some settings."), _("This lesson locks all settings.")
        words = some if lesson.open else every
    st.caption(f":material/lock: {words}")


def few_open() -> list[str] | None:
    """Return the settings that the open lesson leaves open; None without a lesson, or for many."""
    lesson = current()
    if lesson is None or lesson.experiment is None or len(lesson.open) > MAX_SHOWN:
        return None
    return sorted(lesson.open)


def refusal(experiment: Experiment | None) -> str:
    """Return why the open lesson does not let an experiment start, or ""."""
    lesson = current()
    if lesson is None or experiment is None:
        return ""
    try:
        lesson.check(experiment)
    except StudentError as error:
        return _(error)
    return ""


def check(experiment: Experiment, varied: Iterable[str] = ()) -> str | None:
    """Return the lesson that a new run or sweep belongs to, None for none.

    varied: the settings that a sweep varies. Raises StudentError, in a sentence, where the open
    lesson locks one of them or what the experiment changes.
    """
    lesson = current()
    if lesson is None:
        return None
    for path in varied:
        lesson.check_setting(path)
    lesson.check(experiment)
    return None if is_preview() else lesson.id


def check_settings(lesson_id: str | None, paths: Iterable[str]) -> None:
    """Raise StudentError where a lesson, which need not be open, locks one of the settings."""
    lesson = None if lesson_id is None else catalogue.catalogue().lessons.get(lesson_id)
    if lesson is not None:
        for path in paths:
            lesson.check_setting(path)


def check_request(run: Run, kind: str) -> None:
    """Raise StudentError where a request would change what the run's lesson locks."""
    turn = turned(kind)
    if turn is not None:
        check_settings(run.meta.lesson, [turn[0]])


def note_run(run: Run) -> None:
    """Note a run that was started in the open lesson. Raises StudentError."""
    lesson = current()
    if lesson is None:
        return
    if is_preview():
        mine = attempt(lesson)
        st.session_state[_OWN_WORK] = dataclasses.replace(mine, runs=(*mine.runs, run.id))
    else:
        attempts.add_run(lesson.id, visitors.visitor().owner, run.id)


def attempt(lesson: Lesson) -> Attempt:
    """Return what this visitor did in a lesson so far."""
    if is_preview():
        mine: Attempt = st.session_state[_OWN_WORK]
        return mine
    return attempts.attempt(lesson.id, visitors.visitor().owner)


def record(lesson: Lesson, task: Task, answer: str, verdict: Verdict) -> None:
    """Keep an answer. Raises StudentError."""
    if not is_preview():
        owner = visitors.visitor().owner
        attempts.record(lesson.id, owner, task.id, answer=answer, verdict=verdict)
        return
    mine = attempt(lesson)
    tries = 1 + (mine.answers[task.id].tries if task.id in mine.answers else 0)
    new = Answer(answer, verdict.is_right, tries, "", verdict.run, dict(verdict.figures))
    answers: dict[str, Any] = {**mine.answers, task.id: new}
    st.session_state[_OWN_WORK] = dataclasses.replace(mine, answers=answers)


def work(lesson: Lesson, task: Task) -> Work:
    """Return what a check of a task may look at: this visitor's runs in the lesson, and all."""
    store, runs = runs_access.store(), []
    for run_id in reversed(attempt(lesson).runs):
        try:
            run = store.get(run_id)
        except RunNotFound:  # deleted
            continue
        if run.problem is None:
            with suppress(StudentError):  # other settings than the lesson locks now
                lesson.check(run.experiment)
                runs.append(run)
    return Work(lesson.words().tasks[task.id], lesson.experiment, runs, store)
