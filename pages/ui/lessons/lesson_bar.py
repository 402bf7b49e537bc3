"""The bar of the open lesson on every page: where one is, the task to do, and the way out."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.lessons import open_lesson, score_report, task_view
from pages.ui.navigation import page_table
from pages.ui.typed import escape


def bar() -> None:
    """Draw the bar, where a lesson is open and the page is not its own."""
    lesson = open_lesson.current()
    if lesson is None or state.page() == "lessons":
        return
    attempt = open_lesson.attempt(lesson)
    opened = [task for task in lesson.tasks if not attempt.is_solved(task.id)]
    n = len(lesson.tasks)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson-bar"):
        st.page_link(
            page_table.path_of("lessons"),
            label=_("Lesson: **{title}**", title=escape(open_lesson.words(lesson).title)),
            icon=":material/school:",
            query_params=open_lesson.query(),
            width="stretch",
        )
        if opened:
            at = lesson.tasks.index(opened[0])
            label = _("Task {at} of {n}", at=at + 1, n=n)
            with st.popover(label, icon=":material/assignment:", key=f"lesson-bar-task-{at}"):
                task_view.task(lesson, opened[0], place=task_view.BAR)
        else:
            st.markdown(f":green[:material/check_circle: {_('All tasks solved')}]", width="content")
        st.button(
            _("Leave lesson"),
            icon=":material/logout:",
            type="tertiary",
            key="lesson-leave",
            on_click=open_lesson.leave,
        )
    score_report.report(lesson, attempt)
