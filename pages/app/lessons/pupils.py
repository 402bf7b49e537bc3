"""A class that works at a lesson: its teacher, and its pupils, who see that they are in.

The teacher is whoever has shown the server's key of lessons in this session.
A class is there while a teacher's class page looks at the lesson, and some hours after. Numbers are
kept in memory: who has one keeps it until the class is reset or the server ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from hmac import compare_digest

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.i18n import _
from tfm_core.lessons import attempts
from tfm_core.lessons.attempts import MAX_NAME, MAX_PARTICIPANTS, Attempt
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.results import server_key

LASTS = 4 * 3600.0
"""Seconds after the teacher's last look for which a class is there."""

_MAX_KEY = 200
_HAS_SHOWN_KEY = "has_shown_key"
_FIELD = "class-key"
_PROBLEM = "pupil-name-problem"


class Classes:
    """The pupils of each lesson, by number. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._looked: dict[str, float] = {}
        self._numbers: dict[str, dict[str, int]] = {}

    def look(self, lesson: str) -> None:
        """Note that a teacher looks at a lesson."""
        self._looked[lesson] = self._clock()

    def is_on(self, lesson: str) -> bool:
        """Return whether a class works at a lesson."""
        return self._clock() - self._looked.get(lesson, -LASTS) < LASTS

    def admit(self, lesson: str, browsers: Iterable[str]) -> dict[str, int]:
        """Number those browsers that have no number yet; return all of the lesson's numbers."""
        with self._lock:
            numbers = self._numbers.setdefault(lesson, {})
            for browser in browsers:
                if browser not in numbers and len(numbers) < MAX_PARTICIPANTS:
                    numbers[browser] = len(numbers) + 1
            return dict(numbers)

    def forget(self, lesson: str) -> None:
        """Begin with pupil 1 again."""
        with self._lock:
            self._numbers.pop(lesson, None)


def classes() -> Classes:
    """Return the classes of this server."""
    return _classes(str(runs_access.store().root))


@st.cache_resource(show_spinner=False)
def _classes(root: str) -> Classes:
    return Classes()


def welcome(lesson: Lesson, attempt: Attempt) -> None:
    """Tell a pupil of a class as whom the teacher sees them, and take a name if they give one."""
    who = visitors.visitor()
    if is_teacher() or open_lesson.is_preview() or not classes().is_on(lesson.id):
        return
    number = classes().admit(lesson.id, [who.owner]).get(who.owner)
    if number is None:
        return
    pupil = _("Pupil {n}", n=number)
    name = f"{attempt.name} ({pupil})" if attempt.name else pupil
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="pupil"):
        words = _("You have joined. Your teacher sees you as **{name}**.", name=escape(name))
        st.markdown(f":green[:material/check_circle:] {words}", width="content")
        with st.popover(_("Enter a name"), type="tertiary"):
            name_field(lesson, _("Your name, for your teacher"), "pupil-name", attempt)


def name_field(lesson: Lesson, label: str, key: str, attempt: Attempt) -> None:
    """Draw the field that takes a pupil's name."""
    if key not in st.session_state:
        st.session_state[key] = attempt.name or ""
    st.text_input(label, key=key, max_chars=MAX_NAME, on_change=_take_name, args=(lesson.id, key))
    if problem := st.session_state.get(_PROBLEM):
        st.caption(f":red[{escape(problem)}]")


def _take_name(lesson: str, key: str) -> None:
    st.session_state[_PROBLEM] = ""
    try:
        attempts.give_name(lesson, visitors.visitor().owner, str(st.session_state[key] or ""))
    except (ValueError, OSError) as error:
        st.session_state[_PROBLEM] = _(error)


def is_teacher() -> bool:
    return bool(st.session_state.get(_HAS_SHOWN_KEY))


def key_field() -> None:
    """Draw the field that takes the key."""
    st.text_input(
        _("Teacher’s key"),
        type="password",
        key=_FIELD,
        max_chars=_MAX_KEY,
        autocomplete="off",
        on_change=_take_key,
    )


def _take_key() -> None:
    shown, st.session_state[_FIELD] = st.session_state[_FIELD].strip(), ""
    if compare_digest(shown.encode(errors="replace"), server_key()):
        st.session_state[_HAS_SHOWN_KEY] = True
    elif shown:
        state.notify(_("Wrong key."))
