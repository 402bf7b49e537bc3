"""What comes out of a lesson: a signed line, xAPI, a package, and a message to a framing site."""

from __future__ import annotations

import json
import re

import streamlit as st

from pages.components.lesson_score import lesson_score
from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.lessons import open_lesson
from pages.ui.runs import runs_access
from pages.ui.typed import escape
from tfm_core.lessons import attempts, results, scorm, xapi
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.results import Result
from tfm_core.runs import settings

FRAME_QUERY = "frame"
"""What the address calls the origin of the site that frames the lesson and gets its score."""

_NAME, _PROBLEM = "lesson-name", "lesson-name-problem"
_ORIGIN = re.compile(r"https?://[a-z0-9.-]{1,253}(:\d{1,5})?", re.ASCII)


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
    said = results.read(line)
    statements = xapi.statements([Result(said)], state.address("", {}))
    st.download_button(
        _("Download as xAPI"),
        json.dumps(statements, ensure_ascii=False, indent=1),
        file_name=f"{lesson.id}.xapi.json",
        mime="application/json",
        icon=":material/download:",
        on_click="ignore",
    )


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
        _("Download for Moodle or Canvas (SCORM 1.2)"),
        scorm.package(lesson, state.address("", {})),
        file_name=f"{lesson.id}.zip",
        mime="application/zip",
        icon=":material/download:",
        on_click="ignore",
    )


def report(lesson: Lesson, attempt: Attempt) -> None:
    """Send the score to the site that frames the lesson, if the link names one that may."""
    said = view_link.query().get(FRAME_QUERY, "").lower()
    if not said or open_lesson.is_preview():
        return
    if not may_frame(said, settings.read().frame_ancestors, scorm.origin_of(state.address("", {}))):
        st.warning(_("The site that frames this lesson may not get its score."))
        return
    solved = sum(attempt.is_solved(task.id) for task in lesson.tasks)
    lesson_score(said, lesson.id, solved, len(lesson.tasks), key="lesson-score")


def may_frame(origin: str, ancestors: str | None, own: str) -> bool:
    """Return whether a site may frame the app, by the sources of a Content-Security-Policy.

    ancestors: None for every site. own: the origin of the app, ``'self'``.
    """
    if _ORIGIN.fullmatch(origin) is None:
        return False
    if ancestors is None:
        return True
    return any(_matches(origin, source.lower(), own) for source in ancestors.split())


def _matches(origin: str, source: str, own: str) -> bool:
    if source == "'self'":
        return origin == own
    if source == "*":
        return True
    if source in ("http:", "https:"):
        return origin.startswith(f"{source}//")
    pattern = re.escape(source).replace(re.escape("://*."), r"://(?:[a-z0-9-]+\.)+")
    pattern = pattern.removesuffix(re.escape(":*")) + (r"(:\d+)?" if source.endswith(":*") else "")
    return re.fullmatch(pattern, origin) is not None
