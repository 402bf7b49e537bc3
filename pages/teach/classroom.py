"""Class: how pupils join, everybody's runs of a lesson, their answers, and the reset."""

from __future__ import annotations

import base64
import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as html

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.components import addresses
from pages.components.buttons import qr_code
from pages.i18n import N_, _, language, ngettext, paragraph
from pages.teach import reading
from pages.teach.reading import TICK, Pupil
from tfm_core.lessons import attempts, catalogue, results
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.task import Task
from tfm_core.lessons.words import TaskWords
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

SCOPE = "class"
MAX_NAMED = 8
"""Pupils that a sentence names."""
MAX_BARS = 8
"""Answers of their own that have a bar each."""


def _lesson(titles: Mapping[str, str]) -> str:
    made: str = view.choice(N_("Lesson"), titles, query="of", is_list=True)
    return made


@dataclass(frozen=True)
class Classroom:
    """The lesson that is looked at, and what of it."""

    lesson: str = _lesson({"": ""})  # the page knows which there are
    view: str = view.choice(
        N_("View"),
        {"start": N_("Start"), "runs": N_("Runs"), "answers": N_("Answers")},
        look={"label_visibility": "collapsed"},
    )


def classroom() -> None:
    lessons = catalogue.catalogue().lessons
    titles = {
        name: lesson_option.words(language()).title for name, lesson_option in lessons.items()
    }
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="class-bar"):
        settings = view.ask(Classroom, SCOPE, lesson=_lesson(titles))
        is_named = settings.view == "runs" and st.toggle(_("Names"), value=True, key="class-names")
        reset_control()
    lesson = lessons[settings.lesson]
    open_lesson.classes().look(lesson.id)
    if settings.view == "start":
        ways_in(lesson)
    elif settings.view == "runs":
        _runs(lesson, is_named=is_named)
    else:
        _answers(lesson)


def ways_in(lesson: Lesson) -> None:
    """Draw how pupils come to a lesson."""
    here = state.address("challenges", {"lesson": lesson.id})
    address = addresses.for_others(here)
    code, words = st.columns([2, 3], vertical_alignment="center")
    with code:
        source = "" if address is None else qr_code(address)
        if source:
            st.html(f'<img class="class-code" src="{source}" alt="{html(_("QR code"))}">')
    with words:
        st.markdown(_("1. Join the same network as this computer."))
        st.markdown(_("2. Scan the code, or open this address:"))
        st.html(f'<p class="class-address">{html(address or here)}</p>')
        if address is None:
            st.error(paragraph("class/local"), icon=":material/link_off:")
        else:
            st.info(paragraph("class/phone"), icon=":material/lan:")


def page() -> None:
    show.header("class")
    if open_lesson.is_teacher():
        classroom()
        return
    results.server_key()  # made when it is first needed
    st.info(paragraph("class/needs-key"), icon=":material/key:")
    open_lesson.key_field()


@st.fragment(run_every=TICK)
def _runs(lesson: Lesson, *, is_named: bool) -> None:
    """Draw the newest run of everybody."""
    pupils = reading.pupils(lesson.id)
    with st.container():
        st.markdown(_summary(pupils, is_named=is_named))
    cards = "".join(_card(pupil, is_named=is_named) for pupil in pupils)
    st.html(f'<ul class="class-runs">{cards}</ul>')


def _summary(pupils: Sequence[Pupil], *, is_named: bool) -> str:
    if not pupils:
        return _("Pupils appear here as soon as they open the lesson.")
    n_active = sum(pupil.run is not None and pupil.run.is_active for pupil in pupils)
    parts = [
        ngettext("{n} pupil", "{n} pupils", len(pupils), n=len(pupils)),
        ngettext("{n} active run", "{n} active runs", n_active, n=n_active),
    ]
    named = [
        _("{name} ({trouble})", name=_name(pupil, is_named=is_named), trouble=pupil.run.trouble)
        for pupil in pupils
        if pupil.run is not None and pupil.run.trouble
    ]
    if named:
        more = [_("{n} more", n=len(named) - MAX_NAMED)] if len(named) > MAX_NAMED else []
        listed = escape(", ".join([*named[:MAX_NAMED], *more]))
        parts.append(f":orange[{_('May need help: {names}', names=listed)}]")
    return " · ".join(parts)


def _name(pupil: Pupil, *, is_named: bool) -> str:
    return (pupil.name if is_named else "") or _("Pupil {n}", n=pupil.number)


def _card(pupil: Pupil, *, is_named: bool) -> str:
    name = html(_name(pupil, is_named=is_named))
    run = pupil.run
    if run is None:
        words = html(_("no run yet"))
        return f'<li class="none"><b>{name}</b><span>{words}</span></li>'
    picture = base64.b64encode(run.curve.encode()).decode()
    address = html(state.address("train", {"run": run.id}))
    words = html(run.words)
    trouble = f" <em>{html(run.trouble)}</em>" if run.trouble else ""
    kind = ' class="troubled"' if run.trouble else ""
    return (
        f"<li{kind}><b>{name}</b>"
        f'<a href="{address}" target="_blank"><img src="data:image/svg+xml;base64,{picture}" '
        f'alt="{html(_("Open this run"))}"></a><span>{words}{trouble}</span></li>'
    )


@st.fragment(run_every=TICK)
def _answers(lesson: Lesson) -> None:
    """Draw how many pupils gave which answer to each task."""
    pupils = reading.pupils(lesson.id)
    words = lesson.words(language())
    for task in lesson.tasks:
        answers = [pupil.answers[task.id] for pupil in pupils if task.id in pupil.answers]
        st.html(_bars(task, words.tasks[task.id], answers, n_pupils=len(pupils)))


def _bars(
    task: Task, words: TaskWords, answers: Sequence[tuple[str, bool]], *, n_pupils: int
) -> str:
    n_right = sum(is_right for _answer, is_right in answers)
    head = _(
        "{right} right, {wrong} wrong, {n} unanswered",
        right=n_right,
        wrong=len(answers) - n_right,
        n=n_pupils - len(answers),
    )
    shown = _counted(task.options(words), answers)
    rows = "".join(
        _row(label, n, most=max(1, n_pupils), is_right=is_right) for label, n, is_right in shown
    )
    if others := len(answers) - sum(n for _label, n, _is_right in shown):
        n = len(dict(answers)) - sum(n > 0 for _label, n, _is_right in shown)
        label = ngettext("{n} other answer", "{n} other answers", n, n=n)
        rows += _row(label, others, most=max(1, n_pupils), is_right=False)
    title = html(words.title or task.id)
    return f'<section class="class-task"><h2>{title}</h2><p>{html(head)}</p>{rows}</section>'


def _counted(
    options: Mapping[str, str], answers: Sequence[tuple[str, bool]]
) -> list[tuple[str, int, bool]]:
    """Return each answer as it is shown, how many gave it, and whether it is right.

    Options stand in their order, also those that nobody chose; other answers the commonest first.
    """
    count, right = Counter(answer for answer, _is in answers), dict(answers)
    if not options:
        shown = [(answer, answer or _("checked")) for answer, _n in count.most_common(MAX_BARS)]
    else:
        shown = list(options.items())
    return [(label, count[answer], right.get(answer, False)) for answer, label in shown]


def _row(label: str, n: int, *, most: int, is_right: bool) -> str:
    mark = " ✓" if is_right else ""
    return (
        f'<div class="class-bar{" right" if is_right else ""}"><span>{html(label)}{mark}</span>'
        f'<i style="--share: {n / most:.3f}"></i><b>{n}</b></div>'
    )


_PATIENCE = 10.0  # seconds for runs to stop


def attempts_left() -> list[Attempt]:
    """Return what the class has left on the server, in all lessons."""
    return [one for name in catalogue.catalogue().lessons for one in attempts.attempts(name)]


def reset_control() -> None:
    """Draw the control; who presses it reads first what it does."""
    removed = attempts_left()
    n_pupils, n_runs = len({attempt.browser for attempt in removed}), len(_runs_of(removed))
    label = _("Reset for the next class")
    with st.popover(label, icon=":material/restart_alt:", disabled=not n_pupils):
        st.markdown(paragraph("class/reset"))
        pupils = ngettext("{n} pupil", "{n} pupils", n_pupils, n=n_pupils)
        runs = ngettext("{n} run", "{n} runs", n_runs, n=n_runs)
        st.button(
            _("Remove {pupils} and {runs}", pupils=pupils, runs=runs),
            type="primary",
            key="class-reset",
            on_click=reset,
        )


def reset() -> None:
    """Remove all attempts, and move their runs to the trash."""
    if not open_lesson.is_teacher():
        return
    removed, store = attempts_left(), runs_access.store()
    for run in _runs_of(removed):
        if run.status.is_active:
            with contextlib.suppress(StudentError, OSError):
                run.request("stop")
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends and any(run.status.is_alive for run in _runs_of(removed)):
        time.sleep(0.1)
    n_left = 0
    for run in _runs_of(removed):
        try:
            store.delete(run.id, by=visitors.visitor().owner)
        except (StudentError, OSError):
            n_left += 1
    if n_left:
        message = ngettext(
            "{n} run is still stopping. Reset again in a moment.",
            "{n} runs are still stopping. Reset again in a moment.",
            n_left,
            n=n_left,
        )
        state.notify(message)
        return
    for lesson in {attempt.lesson for attempt in removed}:
        attempts.reset(lesson)
        reading.forget(lesson)
    state.notify(_("Ready for the next class. You can restore the runs on Runs."))


def _runs_of(attempts: Iterable[Attempt]) -> list[Run]:
    """Return the runs of a class that are still there."""
    runs = []
    for run_id in dict.fromkeys(run for attempt in attempts for run in attempt.runs):
        with contextlib.suppress(RunNotFound):
            run = runs_access.store().get(run_id)
            if not run.meta.recorded:
                runs.append(run)
    return runs


if __name__ == "__main__":
    page()
