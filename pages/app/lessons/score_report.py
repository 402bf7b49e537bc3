"""The score of a lesson for the site that frames it, such as a learning platform."""

from __future__ import annotations

import re

import streamlit as st

from pages.app import state
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.components.component import component
from pages.i18n import _
from tfm_core import settings
from tfm_core.lessons import scorm
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.lesson import Lesson

FRAME_QUERY = "frame"
"""What the address calls the origin of the site that frames the lesson and gets its score."""

_FRAME = "lesson-frame"
_score = component("lesson_score", html="")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]{1,253}(:\d{1,5})?", re.ASCII)


def report(lesson: Lesson, attempt: Attempt) -> None:
    """Send the score to the site that frames the lesson, if the link named one that may."""
    linked = view.query().get(FRAME_QUERY)
    if linked is not None:  # the other pages of the lesson do not have it in their addresses
        st.session_state[_FRAME] = linked.lower()
    said = str(st.session_state.get(_FRAME, ""))
    if not said or open_lesson.is_preview():
        return
    if not may_frame(said, settings.read().frame_ancestors, scorm.origin_of(state.address("", {}))):
        st.warning(_("The site around this lesson isn't allowed to receive its score."))
        return
    solved = sum(attempt.is_solved(task.id) for task in lesson.tasks)
    facts = {"lesson": lesson.id, "solved": solved, "tasks": len(lesson.tasks)}
    _score({"origin": said, "message": {"type": scorm.MESSAGE, **facts}}, key="lesson-score")


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
