"""A task of a lesson: its words, the way to its page, an answer, and what the check says."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.app import state
from pages.app.address import old_addresses
from pages.app.lessons import open_lesson, score_report
from pages.app.navigation import page_table
from pages.app.typed import escape
from pages.i18n import _
from tfm_core.lessons.checks.task import Task
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.words import TaskWords

MAX_RADIO = 6
"""Options of a choice that stand below each other; more are a list that opens."""
_ANSWER_WIDTH = 260  # pixels
BAR = "bar"
"""The place of a task in the bar of other pages."""
_MESSAGES = "lesson-messages"  # (lesson, task) -> (whether right, sentence)


def task(lesson: Lesson, one: Task, *, place: str) -> None:
    """Draw a task. place: begins the keys of its controls."""
    words = open_lesson.words(lesson).tasks[one.id]
    st.markdown(words.text)
    page_link(one, place=place)
    attempt = open_lesson.attempt(lesson)
    is_solved = attempt.is_solved(one.id)
    if not is_solved:
        _form(lesson, one, words, place)
    message = _messages().get((lesson.id, one.id))
    if is_solved:
        said = "" if message is None else escape(message[1])
        parts = [said, words.solved]
        st.success("\n\n".join(filter(None, parts)) or _("Solved."), icon=":material/check_circle:")
    elif message is not None:
        st.warning(escape(message[1]), icon=":material/help:")


def page_link(one: Task, *, place: str) -> None:
    """Draw the link to the page of a task, in the lesson; for Train without a run."""
    name, view = old_addresses.current(one.page, one.view)
    facts = page_table.PAGES.get(name)
    if facts is None or facts.name == state.page():
        return
    label = _("Open {page}", page=_(facts.title))
    if facts.name == "train":
        st.button(label, icon=facts.icon, key=f"{place}-{one.id}-page", on_click=_to_train)
        if st.session_state.pop(_GO, False):
            st.switch_page(facts.path, query_params=open_lesson.query())
        return
    query = {**view, **open_lesson.query()}
    st.page_link(facts.path, label=label, icon=facts.icon, query_params=query, width="content")


_GO = "lesson-go-to-train"


def _to_train() -> None:
    """Show the configuration on Train, not the run that was shown last."""
    state.set_current_run(None)
    st.session_state[_GO] = True


def _form(lesson: Lesson, one: Task, words: TaskWords, place: str) -> None:
    key = f"{place}-{lesson.id}-{one.id}"
    with st.form(f"{key}-form", border=False, enter_to_submit=True):
        given = _answer(lesson, one, words, key)
        label = _("Check my runs") if one.asks == "nothing" else _("Check")
        pressed = st.form_submit_button(label, type="primary", icon=":material/done:")
    if pressed:
        with st.spinner(_("Checking …"), show_time=False):
            is_right = _judge(lesson, one, given)
        if is_right and place == BAR:  # which goes on to the next task
            said = _messages()[lesson.id, one.id][1] or words.solved
            state.notify(_("Solved. {why}", why=said))
        st.rerun()


def _answer(lesson: Lesson, one: Task, words: TaskWords, key: str) -> object:
    """Draw the input of an answer and return what is in it."""
    label = _("Your answer")
    if one.asks == "number":
        return st.number_input(
            label, value=None, step=1.0, format="%.10g", key=key, width=_ANSWER_WIDTH
        )
    if one.asks == "head":
        left, right, _rest = st.columns([1, 1, 4])
        with left:
            layer = st.number_input(
                _("Layer"), min_value=1, max_value=99, value=None, key=f"{key}-layer"
            )
        with right:
            head = st.number_input(
                _("Head"), min_value=1, max_value=99, value=None, key=f"{key}-head"
            )
        return [layer, head]
    if one.asks == "choice":
        options = one.options(words)
        shared: dict[str, Any] = {
            "options": list(options),
            "format_func": lambda name: _(options.get(name, name)),
            "index": None,
            "key": key,
        }
        if len(options) > MAX_RADIO:
            return st.selectbox(label, placeholder=_("Choose"), **shared)
        return st.radio(label, label_visibility="collapsed", **shared)
    return None


def _judge(lesson: Lesson, one: Task, given: object) -> bool:
    """Check an answer, keep it, note what to say, and return whether it is right.

    One that can't be judged yet is not kept.
    """
    work = open_lesson.work(lesson, one)
    shown = open_lesson.words(lesson).tasks[one.id]
    try:
        texts = [option.text for option in shown.options]
        has_same_options = len(texts) == len(work.words.options)
        if shown is not work.words and given in texts and has_same_options:
            given = work.words.options[texts.index(str(given))].text  # as in English
        answer = one.answer_of(given, work.words)
        verdict = one.judge(answer, work)
        open_lesson.record(lesson, one, answer, verdict)
    except (ValueError, OSError) as error:
        _messages()[lesson.id, one.id] = False, _(error)
        return False
    sentence = _reason(verdict.sentence, shown, work.words)
    if not verdict.is_right:
        sentence = _("Not yet. {why}", why=sentence) if sentence else _("Not yet. Try again.")
    _messages()[lesson.id, one.id] = verdict.is_right, sentence
    return verdict.is_right


def _reason(sentence: str, shown: TaskWords, words: TaskWords) -> str:
    """Return a reason as it is shown: that of an option, by its place, or translated."""
    pairs = zip(words.options, shown.options, strict=False)
    return next((here.why for one, here in pairs if sentence and one.why == sentence), _(sentence))


def has_message(lesson: Lesson, one: Task) -> bool:
    """Return whether a check said something of a task in this session."""
    return (lesson.id, one.id) in _messages()


def _messages() -> dict[tuple[str, str], tuple[bool, str]]:
    said: dict[tuple[str, str], tuple[bool, str]] = st.session_state.setdefault(_MESSAGES, {})
    return said


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
                task(lesson, opened[0], place=BAR)
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
