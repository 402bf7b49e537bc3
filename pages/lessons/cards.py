"""The lessons as cards, and a teacher's file to preview."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui.accounts import visitors
from pages.ui.lessons import open_lesson
from pages.ui.navigation import page_table
from pages.ui.typed import escape
from tfm_core.config import ConfigError
from tfm_core.lessons import catalogue
from tfm_core.lessons.lesson import MAX_BYTES, Lesson, made

_COLUMNS = 2
_FILES = "lessons-preview-files"
_PROBLEMS = "lessons-preview-problems"


def cards() -> None:
    known = catalogue.catalogue()
    lessons = list(known.lessons.values())
    with st.container(key="lesson-cards"):
        for start in range(0, len(lessons), _COLUMNS):
            row = zip(st.columns(_COLUMNS), lessons[start : start + _COLUMNS], strict=False)
            for number, (column, lesson) in enumerate(row, start + 1):
                with column:
                    _card(number, lesson)
    if known.problems and visitors.visitor().may_change_all:
        with st.expander(_("Lesson files with problems"), icon=":material/error:"):
            for sentence in known.problems:
                st.caption(f":red[{escape(_(sentence))}]")
    _preview()


def _card(number: int, lesson: Lesson) -> None:
    words, attempt = open_lesson.words(lesson), open_lesson.attempt(lesson)
    n, n_solved = len(lesson.tasks), sum(attempt.is_solved(task.id) for task in lesson.tasks)
    icon = ":material/check_circle:" if n_solved == n else ":material/school:"
    with st.container(border=True, gap=None, height="stretch"):
        st.page_link(
            page_table.path_of("lessons"),
            label=f"**{number} · {escape(words.title)}**",
            icon=icon,
            query_params={open_lesson.LESSON_QUERY: lesson.id},
        )
        facts = [_("{n} min", n=lesson.minutes)]
        if n_solved == n:
            facts.append(_("solved"))
        elif attempt.answers or attempt.runs:
            facts.append(_("{n_solved} of {n} solved", n_solved=n_solved, n=n))
        st.caption(f"{words.goal}  \n{' · '.join(facts)}")


def _preview() -> None:
    """Let a teacher look at a lesson of two files; nothing of it is kept."""
    problems = st.session_state.get(_PROBLEMS, [])
    with st.expander(_("Preview a lesson"), icon=":material/preview:", expanded=bool(problems)):
        st.caption(_("A TOML file and its Markdown; docs/lessons.md says what they hold."))
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
    files = st.session_state.get(_FILES) or []
    st.session_state[_PROBLEMS] = []
    settings = [file for file in files if file.name.endswith(".toml")]
    words = [file for file in files if file.name.endswith(".md")]
    if len(settings) != 1 or len(words) != 1:
        if len(files) > 1:
            st.session_state[_PROBLEMS] = [_("Choose one TOML file and one Markdown file.")]
        return
    if any(file.size > MAX_BYTES for file in files):
        st.session_state[_PROBLEMS] = [
            _("A file of a lesson may have {n} bytes.", n=f"{MAX_BYTES:,}")
        ]
        return
    texts = {"en": (words[0].name, words[0].getvalue())}
    try:
        lesson = made(settings[0].name, settings[0].getvalue(), texts)
    except ConfigError as error:
        st.session_state[_PROBLEMS] = error.sentences
        return
    open_lesson.preview(lesson)
