"""One lesson: its goal, its text, its tasks, and the result to hand in."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, language
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.lessons import open_lesson, pupils, score_report, task_view
from pages.ui.navigation import page_table
from pages.ui.runs import runs_access
from pages.ui.typed import escape
from tfm_core.lessons import attempts, catalogue, results, scorm
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.checks.task import Task
from tfm_core.lessons.lesson import Lesson

_NAME, _PROBLEM = "lesson-name", "lesson-name-problem"


def view(lesson: Lesson) -> None:
    words, attempt = open_lesson.words(lesson), open_lesson.attempt(lesson)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="page-title"):
        st.title(escape(words.title), anchor=False, width="content")
        minutes = _("{n} min", n=lesson.minutes)
        preview = f" · {_('preview: nothing is kept')}" if open_lesson.is_preview() else ""
        st.caption(f"{words.goal} {minutes}{preview}", width="stretch")
        st.button(
            _("All lessons"),
            icon=":material/grid_view:",
            type="tertiary",
            key="lesson-all",
            on_click=open_lesson.leave,
        )
    pupils.welcome(lesson, attempt)
    if words.text:
        st.markdown(words.text)
    if "train" in lesson.pages:
        open_lesson.draw_locks()
    opened = next((task.id for task in lesson.tasks if not attempt.is_solved(task.id)), "")
    for number, task in enumerate(lesson.tasks, 1):
        _task(lesson, task, number, attempt, is_open=task.id == opened)
    if not opened:
        _next(lesson)
    result(lesson, attempt)
    score_report.report(lesson, attempt)


def _task(lesson: Lesson, task: Task, number: int, attempt: Attempt, *, is_open: bool) -> None:
    title = open_lesson.words(lesson).tasks[task.id].title or _("Task")
    icon = ":material/check_circle:" if attempt.is_solved(task.id) else ":material/circle:"
    is_open = is_open or task_view.has_message(lesson, task)  # what was just said stays in sight
    key = f"lesson-task-{lesson.id}-{task.id}-{is_open}"
    with st.expander(f"{number} · {escape(title)}", icon=icon, expanded=is_open, key=key):
        task_view.task(lesson, task, place="page")


def _next(lesson: Lesson) -> None:
    """Link to the lesson behind a solved one."""
    ids = list(catalogue.catalogue().lessons)
    at = ids.index(lesson.id) + 1 if lesson.id in ids else len(ids)
    if at < len(ids):
        title = open_lesson.words(catalogue.lesson(ids[at])).title
        st.page_link(
            page_table.path_of("lessons"),
            label=_("Next: {title}", title=escape(title)),
            icon=":material/arrow_forward:",
            query_params={open_lesson.LESSON_QUERY: ids[at]},
        )


def result(lesson: Lesson, attempt: Attempt) -> None:
    """Draw the signed line, and the files for learning platforms."""
    with st.container(horizontal=True, gap="small", key="lesson-results"):
        if attempt.answers and not open_lesson.is_preview():
            with st.popover(_("Hand in"), icon=":material/assignment_turned_in:"):
                _hand_in(lesson, attempt)
        with st.popover(_("For teachers"), icon=":material/local_library:"):
            _for_teachers(lesson)


def _hand_in(lesson: Lesson, attempt: Attempt) -> None:
    if _NAME not in st.session_state:
        st.session_state[_NAME] = attempt.name or ""
    st.text_input(
        _("Your name, if you want it in the result"),
        key=_NAME,
        max_chars=attempts.MAX_NAME,
        on_change=_take_name,
        args=(lesson.id,),
    )
    if problem := st.session_state.get(_PROBLEM):
        st.caption(f":red[{escape(problem)}]")
    try:
        line = results.line(lesson, attempt, store=runs_access.store(), key=results.server_key())
    except ValueError as error:
        st.caption(f":red[{escape(_(error))}]")
        return
    st.caption(_("Copy this line and hand it in. A changed line is refused."))
    st.code(line, language=None, wrap_lines=True, height=120)


def _take_name(lesson: str) -> None:
    st.session_state[_PROBLEM] = ""
    try:
        attempts.give_name(lesson, visitors.visitor().owner, str(st.session_state[_NAME] or ""))
    except (ValueError, OSError) as error:
        st.session_state[_PROBLEM] = _(error)


def _for_teachers(lesson: Lesson) -> None:
    st.caption(_("Copy link, at the top, gives this lesson’s address and QR code."))
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
