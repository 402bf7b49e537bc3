"""One lesson: its goal, its text, its tasks, and the result to hand in."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.lessons import hand_in
from pages.ui.lessons import open_lesson, pupils, score_report, task_view
from pages.ui.navigation import page_table
from pages.ui.typed import escape
from tfm_core.lessons import catalogue
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.checks.task import Task
from tfm_core.lessons.lesson import Lesson


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
    hand_in.result(lesson, attempt)
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
