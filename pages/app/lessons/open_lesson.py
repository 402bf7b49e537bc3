"""The lesson or tour that a session has open: its task, its locks, its class and its score.

While one is open its address has it on every page, and a run starts only with the lesson's locked
settings. A preview of a teacher's file is open in the same way, but the server keeps nothing of it.
The visitor who has shown the server's key is the teacher. A class is open while a teacher looks at
the lesson and some hours after; pupils keep their numbers until it is reset or the server ends.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from hmac import compare_digest

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.address.parameters import whole
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.components.component import component
from pages.i18n import _, language
from tfm_core import settings
from tfm_core.choices.config import Experiment
from tfm_core.lessons import attempts, catalogue, scorm
from tfm_core.lessons.attempts import MAX_NAME, MAX_PARTICIPANTS, Attempt
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.results import server_key
from tfm_core.lessons.task import Task, Work
from tfm_core.lessons.words import LessonWords
from tfm_core.runs.process.requests import turned
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

LESSON_QUERY = "lesson"
"""What the address calls the open lesson, perhaps with the number of a task: ``translate.3``."""
TOUR_QUERY = "tour"
"""What older links to tours call it."""
PREVIEW = "preview"
"""What the address calls a lesson that is only previewed."""

_OPEN, _NUMBER, _RUN = "open-lesson", "open-lesson-task", "open-lesson-run"
_PROBLEM = "open-lesson-problem"
_SEEN = "open-lesson-seen"  # what the address said last, and where the session was then
_PREVIEWED = "open-lesson-preview"
_WORK = "open-lesson-work"  # attempts that the session alone keeps, by what the address calls them


def follow_link() -> None:
    """Open the lesson and the task that the address names, and name them in the address."""
    query = view.query()
    linked = query.get(LESSON_QUERY, query.get(TOUR_QUERY))
    seen, seen_place = st.session_state.get(_SEEN, (None, ""))
    if linked is None:
        st.session_state[_PROBLEM] = ""
        if current() is not None:
            linked = place()
    elif linked not in (seen, place()):
        _open(linked)
        view.send_query()
        if "." in linked and current() is not None:
            linked = place()
    elif place() != seen_place:  # the session has gone on
        linked = place()
    view.put_query({TOUR_QUERY: None, LESSON_QUERY: linked})
    st.session_state[_SEEN] = linked, place()


def _open(text: str) -> None:
    """Open a lesson by its id and perhaps a number, or note why not."""
    name, _dot, number_text = text.partition(".")
    st.session_state[_PROBLEM] = ""
    try:
        lesson = _find(name)
    except StudentError as error:
        st.session_state[_PROBLEM] = str(_(error))
        st.session_state[_OPEN] = None
        return
    is_other = st.session_state.get(_OPEN) != name
    st.session_state[_OPEN] = name
    if lesson.over is not None:
        st.session_state[_RUN] = state.linked_run_id()
    elif is_other and lesson.experiment is not None:
        state.set_draft(lesson.experiment.model_dump())
    count, number = len(lesson.tasks), whole(number_text)
    if number is None:
        number = _first(lesson)
    st.session_state[_NUMBER] = max(1, min(number, count))
    if number_text and st.session_state[_NUMBER] != whole(number_text):
        title = words(lesson).title
        problem = _(
            "The link asks for a task that “{title}” doesn't have. Its tasks are 1 to {n}.",
            title=title,
            n=count,
        )
        st.session_state[_PROBLEM] = problem


def _first(lesson: Lesson) -> int:
    """Return the number of the task on which to go on: where one was, else the first open one."""
    mine, numbers = attempt(lesson), range(1, len(lesson.tasks) + 1)
    opened = [n for n in numbers if not mine.is_solved(lesson.tasks[n - 1].id)]
    left = [n for n in opened if lesson.tasks[n - 1].id == mine.task]
    return (left or opened or [len(numbers)])[0]


def problem() -> str:
    """Return why the lesson of the link could not be opened, or ""."""
    return str(st.session_state.get(_PROBLEM, ""))


def current() -> Lesson | None:
    """Return the open lesson or tour, if any."""
    name = st.session_state.get(_OPEN)
    if name is None:
        return None
    try:
        return _find(name)
    except StudentError:  # its file was removed meanwhile
        st.session_state[_OPEN] = None
        return None


def number() -> int:
    """Return the number of the task that the session is on, from 1."""
    return int(st.session_state.get(_NUMBER, 1))


def place() -> str:
    """Return the open lesson and its task as the address says them, "" without one."""
    name = st.session_state.get(_OPEN)
    return "" if name is None else f"{name}.{number()}"


def _find(name: str) -> Lesson:
    previewed: Lesson | None = st.session_state.get(_PREVIEWED)
    if name == PREVIEW and previewed is not None:
        return previewed
    return catalogue.lesson(name)


def words(lesson: Lesson) -> LessonWords:
    return lesson.words(language())


def leave() -> None:
    """Close the open lesson, also in the address."""
    for key in (_OPEN, _PROBLEM, _RUN):
        st.session_state.pop(key, None)
    view.put_query({LESSON_QUERY: None})


def go(lesson: Lesson, number: int, run_id: str | None = None) -> None:
    """Go to a task of a lesson or tour, which opens it; remember where this visitor is.

    run_id: of a tour, the run that it leads over from now on.
    """
    if lesson is not current():
        st.session_state[_OPEN] = lesson.id
    st.session_state[_NUMBER], st.session_state[_RUN] = number, run_id
    st.session_state[_PROBLEM] = ""
    with suppress(StudentError):  # it cannot be kept
        change(lesson, lambda old: old.on_task(lesson.tasks[number - 1].id, run_id or ""))


def preview(lesson: Lesson) -> None:
    """Open a lesson of a file, for this session only."""
    st.session_state[_PREVIEWED] = lesson
    st.session_state.setdefault(_WORK, {})[PREVIEW] = Attempt(lesson.id, visitors.visitor().owner)
    _open(PREVIEW)
    view.put_query({LESSON_QUERY: PREVIEW})


def is_preview() -> bool:
    return st.session_state.get(_OPEN) == PREVIEW


def is_in_sight() -> bool:
    """Return whether the page in sight is that of the open lesson: it shows no other challenge."""
    return state.page() == "challenges" and not {"experiment", "bug"} & view.query().keys()


def query() -> dict[str, str]:
    """Return what a link within the open lesson says besides."""
    return {LESSON_QUERY: place()} if place() else {}


# ---- the run of a tour


def run() -> Run | None:
    """Return the run of the open tour: the chosen one, else the recorded one, if there is any."""
    lesson = current()
    if lesson is None or lesson.over is None:
        return None
    for run_id in (st.session_state.get(_RUN), lesson.over.recorded):
        found = found_run(run_id)
        if found is not None and lesson.over.fits(found.experiment):
            return found
    return None


def found_run(run_id: str | None) -> Run | None:
    """Return a run that can be read, if there is one."""
    if not run_id:
        return None
    with suppress(RunNotFound):
        found = runs_access.open_run(run_id)
        return found if found.problem is None else None
    return None


# ---- what a lesson locks


def lock(path: str) -> str:
    """Return why the open lesson locks a setting, or ""."""
    lesson = current()
    if lesson is None or not lesson.locks(path):
        return ""
    return _("Locked by the lesson “{title}”.", title=words(lesson).title)


def asks_for(path: str) -> bool:
    """Return whether the open lesson asks for a setting, so that nobody may give it away."""
    lesson = current()
    return lesson is not None and lesson.experiment is not None and path in lesson.open


MAX_SHOWN = 6
"""Open settings that Train shows by themselves; with more it shows all settings."""


def draw_locks() -> None:
    """Say what the open lesson locks, if it does."""
    lesson, few = current(), few_open()
    if lesson is None or lesson.experiment is None:
        return
    if few:
        labels = ", ".join(f"**{_(lesson.labels.get(path, path))}**" for path in few)
        words = _("This lesson locks all settings but {settings}.", settings=labels)
    else:
        some, every = _("This lesson locks some settings."), _("This lesson locks all settings.")
        words = some if lesson.open else every
    st.caption(f":material/lock: {words}")


def few_open() -> list[str] | None:
    """Return the settings that the open lesson leaves open; None without a lesson, or for many."""
    lesson = current()
    if lesson is None or lesson.experiment is None or len(lesson.open) > MAX_SHOWN:
        return None
    return sorted(lesson.open)


def refusal(experiment: Experiment | None) -> str:
    """Return why the open lesson does not let an experiment start, or ""."""
    lesson = current()
    if lesson is None or experiment is None:
        return ""
    try:
        lesson.check(experiment)
    except StudentError as error:
        return _(error)
    return ""


def check(experiment: Experiment, varied: Iterable[str] = ()) -> str | None:
    """Return the lesson that a new run or sweep belongs to, None for none.

    varied: the settings that a sweep varies. Raises StudentError, in a sentence, where the open
    lesson locks one of them or what the experiment changes.
    """
    lesson = current()
    if lesson is None:
        return None
    for path in varied:
        lesson.check_setting(path)
    lesson.check(experiment)
    return None if is_preview() or lesson.over is not None else lesson.id


def check_settings(lesson_id: str | None, paths: Iterable[str]) -> None:
    """Raise StudentError where a lesson, which need not be open, locks one of the settings."""
    lesson = None if lesson_id is None else catalogue.catalogue().lessons.get(lesson_id)
    if lesson is not None:
        for path in paths:
            lesson.check_setting(path)


def check_request(run: Run, kind: str) -> None:
    """Raise StudentError where a request would change what the run's lesson locks."""
    turn = turned(kind)
    if turn is not None:
        check_settings(run.meta.lesson, [turn[0]])


# ---- what was done in it


def note_run(run: Run) -> None:
    """Note a run that was started in the open lesson. Raises StudentError."""
    lesson = current()
    if lesson is not None and lesson.over is None:
        change(lesson, lambda old: old.with_run(run.id))


def attempt(lesson: Lesson) -> Attempt:
    """Return what this visitor did in a lesson so far."""
    kept: dict[str, Attempt] = st.session_state.get(_WORK, {})
    mine = kept.get(_work_key(lesson))
    return mine or attempts.attempt(lesson.id, visitors.visitor().owner)


def change(lesson: Lesson, new: Callable[[Attempt], Attempt]) -> None:
    """Change what this visitor did in a lesson. Raises StudentError where it cannot be kept.

    The session keeps a preview, and a tour of which the server can keep no more.
    """
    kept: dict[str, Attempt] = st.session_state.setdefault(_WORK, {})
    name = _work_key(lesson)
    if name not in kept:
        try:
            attempts.change(lesson.id, visitors.visitor().owner, new)
        except StudentError:
            if lesson.over is None:
                raise
        else:
            return
    kept[name] = new(attempt(lesson))


def _work_key(lesson: Lesson) -> str:
    return PREVIEW if is_preview() and lesson is current() else lesson.id


def work(lesson: Lesson, task: Task) -> Work:
    """Return what a check of a task may look at: this visitor's runs in the lesson, and all."""
    words, store = lesson.words().tasks[task.id], runs_access.store()
    over = run()
    if over is not None:
        mine = attempt(lesson)
        is_answered = mine.runs == (over.id,) and task.id in mine.answers
        return Work(words, None, [over], store, runs_access.curves(over), is_answered)
    fitting = []
    for one in attempt(lesson).trained(store):
        with suppress(StudentError):  # other settings than the lesson locks now
            lesson.check(one.experiment)
            fitting.append(one)
    return Work(words, lesson.experiment, fitting, store)


FRAME_QUERY = "frame"
"""What the address calls the origin of the site that frames the lesson and gets its score."""

_FRAME = "lesson-frame"
_send_score = component("lesson_score", html="")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]{1,253}(:\d{1,5})?", re.ASCII)


def report_score(lesson: Lesson, attempt: Attempt) -> None:
    """Send the score to the site that frames the lesson, if the link named one that may."""
    linked = view.query().get(FRAME_QUERY)
    if linked is not None:  # the other pages of the lesson do not have it in their addresses
        st.session_state[_FRAME] = linked.lower()
    said = str(st.session_state.get(_FRAME, ""))
    if not said or is_preview():
        return
    if not may_frame(said, settings.read().frame_ancestors, scorm.origin_of(state.address("", {}))):
        st.warning(_("The site around this lesson isn't allowed to receive its score."))
        return
    solved = sum(attempt.is_solved(task.id) for task in lesson.tasks)
    facts = {"lesson": lesson.id, "solved": solved, "tasks": len(lesson.tasks)}
    _send_score({"origin": said, "message": {"type": scorm.MESSAGE, **facts}}, key="lesson-score")


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


LASTS = 4 * 3600.0
"""Seconds after the teacher's last look for which a class is there."""

_MAX_KEY = 200
_HAS_SHOWN_KEY = "has_shown_key"
_KEY_FIELD = "class-key"
_NAME_PROBLEM = "pupil-name-problem"


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


def pupil_bar(lesson: Lesson, attempt: Attempt) -> None:
    """Tell a pupil of a class as whom the teacher sees them, and take a name if they give one."""
    who = visitors.visitor()
    if is_teacher() or is_preview() or not classes().is_on(lesson.id):
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
    if problem := st.session_state.get(_NAME_PROBLEM):
        st.caption(f":red[{escape(problem)}]")


def _take_name(lesson: str, key: str) -> None:
    st.session_state[_NAME_PROBLEM] = ""
    try:
        attempts.give_name(lesson, visitors.visitor().owner, str(st.session_state[key] or ""))
    except (ValueError, OSError) as error:
        st.session_state[_NAME_PROBLEM] = _(error)


def is_teacher() -> bool:
    return bool(st.session_state.get(_HAS_SHOWN_KEY))


def key_field() -> None:
    """Draw the field that takes the key."""
    st.text_input(
        _("Teacher’s key"),
        type="password",
        key=_KEY_FIELD,
        max_chars=_MAX_KEY,
        autocomplete="off",
        on_change=_take_key,
    )


def _take_key() -> None:
    shown, st.session_state[_KEY_FIELD] = st.session_state[_KEY_FIELD].strip(), ""
    if compare_digest(shown.encode(errors="replace"), server_key()):
        st.session_state[_HAS_SHOWN_KEY] = True
    elif shown:
        state.notify(_("Wrong key."))
