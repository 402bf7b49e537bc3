"""The score of a lesson for the site that frames it."""

from __future__ import annotations

from pages.components.component import component
from tfm_core.lessons.scorm import MESSAGE

_score = component("lesson_score", html="")


def lesson_score(origin: str, lesson: str, solved: int, tasks: int, *, key: str) -> None:
    """Send how many tasks are solved to the framing page, if it is of this origin."""
    said = {"type": MESSAGE, "lesson": lesson, "solved": solved, "tasks": tasks}
    _score({"origin": origin, "message": said}, key=key)
