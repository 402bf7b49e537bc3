"""Reach: lessons, whose tasks the app checks."""

from __future__ import annotations

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.navigation import page_table
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.i18n import _, language
from pages.learn.challenges.challenge import ICONS, Challenge
from tfm_core.choices.config import ConfigError
from tfm_core.lessons import catalogue, results, scorm
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.lesson import MAX_BYTES, Lesson, made
from tfm_core.sentences import StudentError

_FILES, _PROBLEMS = "lessons-preview-files", "lessons-preview-problems"
_NAME = "lesson-name"


def challenge(lesson: Lesson) -> Challenge:
    text, attempt = open_lesson.words(lesson), open_lesson.attempt(lesson)
    page, _query = page_table.current_address(next(iter(lesson.pages), "challenges"), {})
    icon = page_table.PAGES[page].icon.split("/")[1].rstrip(":")
    n_parts = len(lesson.tasks) + bool(lesson.open)  # training counts as a task
    return Challenge(
        {open_lesson.LESSON_QUERY: lesson.id},
        text.title,
        text.goal,
        ICONS.get(lesson.id, icon),
        1 if n_parts < 4 else 2 if n_parts == 4 else 3,
        lesson.minutes,
        sum(attempt.is_solved(task.id) for task in lesson.tasks),
        len(lesson.tasks),
    )


def for_teachers() -> None:
    """List problems of the lesson files, and preview a lesson from two files without saving it."""
    lessons = catalogue.catalogue()
    if lessons.problems and visitors.visitor().may_change_all:
        with st.expander(_("Lesson files with problems"), icon=":material/error:"):
            for sentence in lessons.problems:
                st.caption(f":red[{escape(_(sentence))}]")
    problems = st.session_state.get(_PROBLEMS, [])
    with st.expander(_("Preview a lesson"), icon=":material/preview:", expanded=bool(problems)):
        st.caption(_("A TOML file and its Markdown file; see docs/lessons.md."))
        st.file_uploader(
            _("Lesson files"),
            type=["toml", "md"],
            accept_multiple_files=True,
            key=_FILES,
            on_change=_take,
        )
        for sentence in problems:
            st.caption(f":red[:material/error: {escape(_(sentence))}]")


def _take() -> None:
    """Open the lesson of two uploaded files, or note what is wrong with them."""
    given = st.session_state.get(_FILES) or []
    files = {file.name.rpartition(".")[2]: file for file in given}
    st.session_state[_PROBLEMS] = []
    if len(given) < 2:
        return
    try:
        if len(given) > 2 or len(files) < 2:
            raise StudentError("Choose one TOML file and one Markdown file.")
        if any(file.size > MAX_BYTES for file in given):
            raise StudentError("A lesson file may have at most {n} bytes.", n=f"{MAX_BYTES:,}")
        texts = {"en": (files["md"].name, files["md"].getvalue())}
        lesson = made(files["toml"].name, files["toml"].getvalue(), texts)
    except ConfigError as error:
        st.session_state[_PROBLEMS] = error.sentences
    except StudentError as error:
        st.session_state[_PROBLEMS] = [error.sentence]
    else:
        open_lesson.preview(lesson)


def draw(lesson: Lesson) -> None:
    text, attempt = open_lesson.words(lesson), open_lesson.attempt(lesson)
    if open_lesson.is_preview():
        st.caption(_("Preview: nothing is saved."))
    open_lesson.pupil_bar(lesson, attempt)
    if text.text:
        st.markdown(text.text)
    if "train" in lesson.pages:
        open_lesson.draw_locks()
    for number, task in enumerate(lesson.tasks, 1):
        is_solved = attempt.is_solved(task.id)
        title = text.tasks[task.id].title or _("Task")
        shown = f"**{escape(title)}**" if number == open_lesson.number() else escape(title)
        st.button(
            f"{number} · {shown}",
            icon=":material/check_circle:" if is_solved else ":material/circle:",
            type="tertiary",
            key=f"lesson-task-{number}",
            on_click=open_lesson.go,
            args=(lesson, number),
        )
    with st.container(horizontal=True, gap="small", key="lesson-results"):
        if attempt.answers and not open_lesson.is_preview():
            with st.popover(_("Hand in"), icon=":material/assignment_turned_in:"):
                _hand_in(lesson, attempt)
        with st.popover(_("For teachers"), icon=":material/local_library:"):
            _for_teachers(lesson)


def _hand_in(lesson: Lesson, attempt: Attempt) -> None:
    open_lesson.name_field(lesson, _("Your name, if you want it in the result"), _NAME, attempt)
    try:
        line = results.line(lesson, attempt, store=runs_access.store(), key=results.server_key())
    except ValueError as error:
        st.caption(f":red[{escape(_(error))}]")
        return
    st.caption(_("Copy this line and hand it in. A changed line is refused."))
    st.code(line, language=None, wrap_lines=True, height=120)


def _for_teachers(lesson: Lesson) -> None:
    st.caption(_("The menu at the top has this lesson’s address and QR code."))
    if open_lesson.is_preview():
        return
    st.download_button(
        _("Download SCORM package"),
        scorm.package(lesson, state.address("", {}), language()),
        file_name=f"{lesson.id}.zip",
        mime="application/zip",
        help=_("For Moodle, Canvas and other platforms: SCORM 1.2."),
        icon=":material/download:",
        on_click="ignore",
    )
