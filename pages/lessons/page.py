"""Lessons: all of them as cards, or the open one with its tasks."""

from __future__ import annotations

from pages.lessons import cards, lesson_view
from pages.ui import show
from pages.ui.lessons import open_lesson

lesson = open_lesson.current()
if lesson is None:
    show.header("lessons")
    cards.cards()
else:
    lesson_view.view(lesson)
