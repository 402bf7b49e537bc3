"""What comes out of a lesson: a signed line, and a package for platforms."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, language
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.lessons import open_lesson
from pages.ui.runs import runs_access
from pages.ui.typed import escape
from tfm_core.lessons import attempts, results, scorm
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.lesson import Lesson

_NAME, _PROBLEM = "lesson-name", "lesson-name-problem"


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
