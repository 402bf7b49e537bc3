"""The bar of the open lesson or tour: the task that the session is on, on every page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.navigation import page_table
from pages.app.navigation.page_table import FINDING, PageFacts
from pages.app.runs import run_actions, runs_access, shown_run
from pages.app.runs.run_actions import Start
from pages.app.typed import escape
from pages.components.task_bar import task_bar
from pages.i18n import N_, _
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.questions import Question
from tfm_core.lessons import attempts, catalogue
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.stops import Over, Stop
from tfm_core.lessons.task import Task, Verdict
from tfm_core.lessons.words import TaskWords
from tfm_core.runs.run import Run

MAX_BUTTONS = 8
"""Options of a choice that have a button each; more are a list that opens."""
_TICK = 1.0  # seconds between looks at what a stop waits for
_SUBMITTED, _FEEDBACK, _NOTE = "task-given", "task-said", "task-note"
_NO_RUN = N_("The run of this tour is not on this server.")


@dataclass(frozen=True, slots=True)
class _Position:
    """The task that the session is on, with the run of a tour."""

    lesson: Lesson
    number: int
    run: Run | None

    @property
    def task(self) -> Task:
        return self.lesson.tasks[self.number - 1]

    @property
    def over(self) -> Over | None:
        """What a tour leads over."""
        return self.lesson.over

    @property
    def is_last(self) -> bool:
        return self.number == len(self.lesson.tasks)

    @property
    def words(self) -> TaskWords:
        return open_lesson.words(self.lesson).tasks[self.task.id]

    @property
    def name(self) -> str:
        """By what the session remembers what was said of the task."""
        return f"{self.lesson.id} {self.task.id}"


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What the bar asks, and what was answered.

    options: of a choice, what is kept -> what is shown. chosen, right: of the options, "" before
    that; right is known of a tour alone. is_over: nothing more can be answered. is_right, said: of
    the answer, None and "" before it.
    """

    text: str
    options: Mapping[str, str]
    chosen: str = ""
    right: str = ""
    is_over: bool = False
    is_right: bool | None = None
    said: str = ""


def bar() -> None:
    """Draw the bar of what this session has open, if anything."""
    lesson = open_lesson.current()
    with st.container(key="task"):
        if lesson is None:
            return
        at = _Position(lesson, open_lesson.number(), open_lesson.run())
        stop = at.task if isinstance(at.task, Stop) else None
        if stop is not None and at.run is None:
            open_lesson.leave()
            state.notify(_(_NO_RUN))
            return
        if stop is not None and stop.starts and state.page() == "train":
            _follow_new_run(at)
        is_live = at.run is not None and at.run.status.is_active
        waits = is_live and stop is not None and bool(stop.waits)
        st.fragment(_bar, run_every=_TICK if waits else None)(at)


def _follow_new_run(at: _Position) -> None:
    """Go on over a run that was started from the page meanwhile."""
    own = open_lesson.found_run(state.current_run_id())
    if own is None or at.over is None or at.run is None or own.meta.recorded:
        return
    if own.id != at.run.id and at.over.fits(own.experiment) and visitors.lists(own):
        _go(at.lesson, at.number + 1, own)


# ---- ways into a tour


def start(name: str, label: str) -> None:
    """Draw a button that opens the first stop of a tour.

    A link from Home to Home would not change the browser's address.
    """
    if st.button(label, icon=":material/tour:", type="tertiary", key=f"tour-{name}"):
        _begin(catalogue.lesson(name), 1)


def resume() -> None:
    """Draw a button that goes on with the tour that this visitor has left, if any."""
    tours, who = catalogue.catalogue().tours, visitors.visitor().owner
    left = attempts.newest(tours, who) if open_lesson.current() is None else None
    if left is None:
        return
    tour = tours[left.lesson]
    ids = [task.id for task in tour.tasks]
    if left.task not in ids:
        return
    n = ids.index(left.task) + 1
    label = _("Resume ({n} of {count})", n=n, count=len(ids))
    title = escape(open_lesson.words(tour).title)
    if st.button(label, help=title, type="tertiary", key="tour-resume"):
        _begin(tour, n, *left.runs[-1:])


def _begin(lesson: Lesson, number: int, run_id: str = "") -> None:
    """Open a stop, over a run if the tour can lead over it, else over the recorded one."""
    over = lesson.over
    runs = [open_lesson.found_run(one) for one in (run_id, over.recorded if over else "")]
    fitting = [run for run in runs if run and over and over.fits(run.experiment)]
    if over is not None and not fitting:
        state.notify(_(_NO_RUN))
        st.rerun()
    _go(lesson, number, fitting[0] if fitting else None)


# ---- the bar


def _bar(at: _Position) -> None:
    name, wanted = page_table.current_address(at.task.page, at.task.view)
    page, finding = page_table.PAGES.get(name), wanted.get(FINDING)
    is_elsewhere = page is not None and (
        state.page() != page.url_path
        or (at.over is None and open_lesson.is_in_sight())
        or (finding is not None and view.query().get(FINDING) != finding)
    )
    away = _away_words(at, page, is_elsewhere=is_elsewhere)
    with st.container(key="task-bar"):
        _head(at)
        told, asking = st.container(key="task-told"), st.container(key="task-asked")
        buttons = st.container(key="task-go", horizontal=True, gap="small")
    waited, question = None, None
    with asking:
        _judge_submitted(at)
        if isinstance(at.task, Stop) and not away:
            waited, question = _observe(at, at.task)
        asked = None if away else _prompt(at, question)
        if asked is not None:
            _draw_prompt(at, asked)
    is_told = question is None or (asked is not None and asked.is_right is not None)
    with told:
        st.markdown(away or at.words.text)
        if wait := "" if away else _wait_words(at, waited, is_told=is_told):
            st.markdown(f"**{escape(wait)}**")
    with buttons:
        _draw_buttons(at, page if is_elsewhere or away else None, waited)
    outlines, veils, happened = [], [], ""
    if isinstance(at.task, Stop) and at.run is not None and not away:
        outlines = at.task.outlines
        if not is_told and not at.run.status.is_active:
            veils = at.task.veils
        if waited is not None and waited.is_right and not at.run.meta.recorded:
            happened = _("You can go on.")
    place = open_lesson.place()
    task_bar(place=place, outlines=outlines, veils=veils, happened=happened, key="task-outlines")
    if at.over is None:
        open_lesson.report_score(at.lesson, open_lesson.attempt(at.lesson))


def _head(at: _Position) -> None:
    n, count = at.number, len(at.lesson.tasks)
    is_tour = at.over is not None
    with st.container(key="task-head", horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_("{n} of {count}", n=n, count=count), width="content")
        st.header(escape(at.words.title or _("Task")), anchor=False, width="content")
        if not is_tour and not open_lesson.is_in_sight():
            st.page_link(
                page_table.path_of("challenges"),
                label=_("Lesson: **{title}**", title=escape(open_lesson.words(at.lesson).title)),
                icon=":material/school:",
                query_params=open_lesson.query(),
            )
        label = _("Leave the tour") if is_tour else _("Leave lesson")
        if st.button(label, icon=":material/close:", type="tertiary", key="task-leave"):
            _leave()
            st.rerun()


def _leave() -> None:
    st.session_state.pop(_NOTE, None)
    open_lesson.leave()


def _away_words(at: _Position, page: PageFacts | None, *, is_elsewhere: bool) -> str:
    """Return where to find what a stop speaks of, "" there and for any other task."""
    if at.run is None or page is None:
        return ""
    if is_elsewhere:
        return _("This stop is on the page {page}.", page=_(page.title))
    if page.shows_run and state.current_run_id() != at.run.id:
        return escape(_("This stop is about another run: {name}.", name=at.run.meta.name))
    return ""


def _observe(at: _Position, stop: Stop) -> tuple[Verdict | None, Question | None]:
    """Return what a stop waits for and asks; say what goes wrong."""
    work = open_lesson.work(at.lesson, stop)
    try:
        with st.spinner(_("Measuring …"), show_time=False):
            waited = stop.waited(work)
            if waited is not None and not waited.is_right:
                work = dataclasses.replace(work, is_answered=False)  # it changes meanwhile
            return waited, stop.asked(work)
    except (OSError, ValueError) as error:
        st.markdown(escape(_(error)))
        return None, None


def _wait_words(at: _Position, waited: Verdict | None, *, is_told: bool) -> str:
    """Return what the stop waits for, or, once its question is answered, what has happened."""
    if note := st.session_state.get(_NOTE):
        return str(note)
    if isinstance(at.task, Stop) and at.task.starts:
        why = why_recorded()
        return _("{why} The tour shows the recorded run instead.", why=why) if why else ""
    if waited is None or at.run is None:
        return ""
    if waited.is_right:
        return _(waited.sentence) if is_told else ""
    if at.run.status.is_active:
        return _("Waiting … {so_far}", so_far=_(waited.sentence))
    return _("This run ended too early. {so_far}", so_far=_(waited.sentence))


# ---- question and answer


def _prompt(at: _Position, question: Question | None) -> _Prompt | None:
    """Return what the task asks, and what was answered so far; None where it asks nothing."""
    mine = open_lesson.attempt(at.lesson)
    answer = mine.answers.get(at.task.id)
    chosen = "" if answer is None else answer.answer
    if not isinstance(at.task, Stop):
        is_right, said = _feedback().get(at.name, (None, ""))
        is_solved = mine.is_solved(at.task.id)
        if is_solved:
            is_right, said = True, "\n\n".join(filter(None, [said, at.words.solved]))
        said = said or (_("Solved.") if is_solved else "")
        options = _options(at.task, at.words, at.lesson)
        return _Prompt("", options, chosen, chosen * is_solved, is_solved, is_right, said)
    if question is None or at.run is None:
        return None
    options = {str(option): escape(_(option)) for option in question.options}
    if mine.runs != (at.run.id,) or chosen not in options:
        return _Prompt(_(question.text), options)
    right, is_right = "", None
    said = _("Let’s see what the run shows.")
    if question.answer in options:
        right, is_right, why = question.answer, question.is_right(chosen), _(question.because)
        said = _("Right. {why}", why=why) if is_right else _("No. {why}", why=why)
    return _Prompt(_(question.text), options, chosen, right, True, is_right, escape(said))


def _options(task: Task, words: TaskWords, lesson: Lesson) -> dict[str, str]:
    """Return the options of a choice: what is kept, as in English -> what is shown."""
    original = lesson.words().tasks[task.id]
    shown: dict[str, str] = {}
    if len(words.options) == len(original.options):
        pairs = zip(original.options, words.options, strict=True)
        shown = {one.text: other.text for one, other in pairs}
    found = task.options(original)
    return {name: shown.get(name) or _(label) for name, label in found.items()}


def _draw_prompt(at: _Position, asked: _Prompt) -> None:
    if asked.text:
        st.markdown(f"**{escape(asked.text)}**")
    if at.task.asks == "choice" and len(asked.options) <= MAX_BUTTONS:
        with st.container(horizontal=True, gap="small", key="task-options"):
            for n, name in enumerate(asked.options):
                st.button(
                    _label(asked, name),
                    key=f"task-{at.lesson.id}-{at.task.id}-{n}",
                    disabled=asked.is_over,
                    on_click=_submit,
                    args=(at, name),
                )
    elif not asked.is_over:
        _form(at, asked)
    if asked.said:
        kinds = {True: "green", False: "orange", None: "gray"}
        icons = {True: "check_circle", False: "help", None: "hourglass_top"}
        icon = f":{kinds[asked.is_right]}[:material/{icons[asked.is_right]}:]"
        with st.container(key="task-verdict"):
            st.markdown(f"{icon} {asked.said}")


def _label(asked: _Prompt, name: str) -> str:
    """Return an option as its button shows it, marked once it is known to be right or wrong."""
    label = asked.options[name]
    if name == asked.right:
        return f":green[✓ {label}]"
    if name == asked.chosen:
        return f":orange[✗ {label}]" if asked.is_right is False else f"**{label}**"
    return label


def _form(at: _Position, asked: _Prompt) -> None:
    key = f"task-{at.lesson.id}-{at.task.id}"
    asks, keys = at.task.asks, [key]
    form = st.form(f"{key}-form", border=False, enter_to_submit=True)
    with form, st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if asks == "number":
            label = _("Your answer")
            st.number_input(label, value=None, step=1.0, format="%.10g", key=key, width=180)
        elif asks == "head":
            keys = [f"{key}-layer", f"{key}-head"]
            for name, label in zip(keys, (_("Layer"), _("Head")), strict=True):
                st.number_input(label, 1, 99, value=None, key=name, width=140)
        elif asks == "choice":
            st.selectbox(
                _("Your answer"),
                list(asked.options),
                format_func=lambda name: asked.options.get(name, name),
                index=None,
                placeholder=_("Choose"),
                key=key,
                width=320,
            )
        label = _("Check my runs") if asks == "nothing" else _("Check")
        st.form_submit_button(
            label, type="primary", icon=":material/done:", on_click=_submit_form, args=(at, keys)
        )


def _submit_form(at: _Position, keys: list[str]) -> None:
    given = [st.session_state.get(key) for key in keys]
    _submit(at, given if len(given) > 1 else given[0])


def _submit(at: _Position, given: object) -> None:
    st.session_state[_SUBMITTED] = at.name, given


def _judge_submitted(at: _Position) -> None:
    """Check an answer that was just given, keep it, and note what to say.

    One that can't be judged yet is kept of a tour alone, whose run may know it later.
    """
    name, given = st.session_state.pop(_SUBMITTED, (None, None))
    if name != at.name:
        return
    with st.spinner(_("Checking …"), show_time=False):
        if isinstance(at.task, Stop):
            _commit(at, at.task, str(given))
        else:
            _feedback()[at.name] = _judged(at, given)
    if open_lesson.is_in_sight():
        st.rerun()


def _commit(at: _Position, stop: Stop, given: str) -> None:
    """Keep the first answer to the question of a stop."""
    assert at.run is not None
    open_lesson.go(at.lesson, at.number, at.run.id)
    if stop.id in open_lesson.attempt(at.lesson).answers:
        return
    work = dataclasses.replace(open_lesson.work(at.lesson, stop), is_answered=True)
    try:
        verdict = stop.judge(given, work)
    except (ValueError, OSError):
        verdict = Verdict(False, "")
    open_lesson.change(at.lesson, lambda old: old.answered(stop.id, given, verdict))


def _judged(at: _Position, given: object) -> tuple[bool, str]:
    work = open_lesson.work(at.lesson, at.task)
    try:
        answer = at.task.answer_of(given, work.words)
        verdict = at.task.judge(answer, work)
        open_lesson.change(at.lesson, lambda old: old.answered(at.task.id, answer, verdict))
    except (ValueError, OSError) as error:
        return False, escape(_(error))
    # the reason of an option, by its place
    pairs = zip(work.words.options, at.words.options, strict=False)
    reasons = {one.why: here.why for one, here in pairs if one.why}
    sentence = reasons.get(verdict.sentence) or _(verdict.sentence)
    if not verdict.is_right:
        sentence = _("Not yet. {why}", why=sentence) if sentence else _("Not yet. Try again.")
    return verdict.is_right, escape(sentence)


def _feedback() -> dict[str, tuple[bool, str]]:
    """Return what was said of the answers of this session: whether right, and why."""
    said: dict[str, tuple[bool, str]] = st.session_state.setdefault(_FEEDBACK, {})
    return said


# ---- on and back


@dataclass(frozen=True, slots=True)
class _Button:
    """A button of the bar. name: of what it does."""

    name: str
    label: str
    is_primary: bool = False
    is_off: bool = False


def _draw_buttons(at: _Position, page: PageFacts | None, waited: Verdict | None) -> None:
    """Draw the buttons, and do what is pressed. page: of the task, where another is in sight."""
    for button in _buttons(at, page, waited):
        if st.button(
            button.label,
            type="primary" if button.is_primary else "secondary",
            key=f"task-go-{button.name}",
            disabled=button.is_off,
        ):
            _act(button.name, at)
    mine = open_lesson.attempt(at.lesson)
    if at.over is None and all(mine.is_solved(one.id) for one in at.lesson.tasks):
        st.markdown(f":green[:material/check_circle: {_('All tasks solved')}]", width="content")


def _buttons(at: _Position, page: PageFacts | None, waited: Verdict | None) -> list[_Button]:
    made = []
    if page is not None:
        label = _("Open {page}", page=_(page.title))
        made.append(_Button("open", label, is_primary=at.over is not None))
        if at.over is not None:
            return made
    if at.number > 1:
        made.append(_Button("back", _("Back")))
    if isinstance(at.task, Stop) and at.run is not None:
        return made + _buttons_of_stop(at, at.task, at.run, waited)
    if not at.is_last:
        is_solved = open_lesson.attempt(at.lesson).is_solved(at.task.id)
        made.append(_Button("next", _("Next"), is_primary=is_solved))
    return made


def _buttons_of_stop(at: _Position, stop: Stop, run: Run, waited: Verdict | None) -> list[_Button]:
    if stop.starts:  # a training of one's own, where the visitor can
        goes_on = _("Use the recorded run") if run.meta.recorded else _("Next")
        if at.over is None or why_recorded():
            return [_Button("next", goes_on, is_primary=True)]
        train = _("Train it ({time})", time=shown_run.preset_time(at.over.preset))
        return [_Button("next", goes_on), _Button("train", train, is_primary=True)]
    made = []
    is_off = waited is not None and not waited.is_right and not run.meta.recorded
    if is_off:
        made.append(_Button("recorded", _("Use the recorded run")))
    if not at.is_last:
        return [*made, _Button("next", _("Next"), is_primary=True, is_off=is_off)]
    other = _next_tour(at.lesson)
    if other is not None:
        title = escape(open_lesson.words(other).title)
        made.append(_Button("other", _("Next tour: {title}", title=title)))
    return [*made, _Button("finish", _("Finish"), is_primary=True)]


def _next_tour(lesson: Lesson) -> Lesson | None:
    """Return the tour behind another one, None behind the last."""
    tours = list(catalogue.catalogue().tours.values())
    following = tours.index(lesson) + 1 if lesson in tours else len(tours)
    return tours[following] if following < len(tours) else None


def _act(pressed: str, at: _Position) -> None:
    match pressed:
        case "open":
            _go(at.lesson, at.number, at.run)
        case "next":
            _go(at.lesson, at.number + 1, at.run)
        case "back":
            _go(at.lesson, at.number - 1, at.run)
        case "recorded" if at.over is not None:
            _go(at.lesson, at.number, runs_access.store().get(at.over.recorded))
        case "train" if at.over is not None:
            _train(at, at.over)
        case "other" if (other := _next_tour(at.lesson)) is not None:
            _begin(other, 1)
        case "finish":
            open_lesson.change(at.lesson, lambda old: old.on_task(""))
            _leave()
            state.notify(
                _(
                    "The tour ends here. Try things on this page, read on from Home, "
                    "or solve a task on Challenges."
                )
            )
            st.rerun()


def why_recorded() -> str:
    """Return why the tour follows the recorded run, "" where the visitor can train one now."""
    why_not = visitors.why_not()
    if why_not:
        return why_not
    queue = runs_access.queue()
    if queue.n_running() >= queue.max_running:
        return _("All workers are busy.")
    return ""


def _train(at: _Position, over: Over) -> None:
    preset = PRESETS[over.preset]
    try:
        run = run_actions.enqueue(
            Start(preset.experiment, state.device(), _(preset.label), preset.name)
        )
    except (ValueError, OSError) as error:
        st.session_state[_NOTE] = _(error)  # until the tour goes on
        st.rerun()
    _go(at.lesson, at.number + 1, run)


def _go(lesson: Lesson, number: int, run: Run | None) -> None:
    """Go to a task and open its page: for Train without a run, unless a tour leads over one."""
    st.session_state.pop(_NOTE, None)
    open_lesson.go(lesson, number, None if run is None else run.id)
    task = lesson.tasks[number - 1]
    view = task.query(run) if isinstance(task, Stop) and run is not None else task.view
    name, view = page_table.current_address(task.page, view)
    page = page_table.PAGES.get(name)
    if page is None:
        st.rerun()
    if page.name == "train" and run is None:
        state.set_current_run(None)
    st.switch_page(page.path, query_params={**view, **open_lesson.query()})
