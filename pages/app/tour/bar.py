"""A tour: the stop and the run that a session is on, its bar, and the ways into it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.address import view_link
from pages.app.address.parameters import Unfit, Written, one_of, whole
from pages.app.navigation import page_table
from pages.app.runs import run_actions, runs_access, shown_run
from pages.app.runs.run_actions import Start
from pages.app.tour.stops import TOURS, Stop, Tour, address
from pages.components import tour as component
from pages.components.tour import TourButton, tour_bar
from pages.i18n import N_, _, paragraph
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.questions import Question
from tfm_core.inspect.tours.waits import TourRun, Waited
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

_RUN, _ANSWERS, _NOTE = "tour-run", "tour-answers", "tour-note"
_TICK = 1.0  # seconds between looks at what a stop waits for
_NO_RUN = N_("The tour needs a run that this server does not have.")
_OTHER = {"translate": "digit", "digit": "discover"}  # tour -> the one that is offered at its end


@dataclass(frozen=True, slots=True)
class TourPlace:
    """A stop of a tour, from 1."""

    tour: str
    number: int

    @property
    def text(self) -> str:
        """Return it as the address says it."""
        return f"{self.tour}.{self.number}"

    @property
    def of(self) -> Tour:
        return TOURS[self.tour]

    @property
    def stop(self) -> Stop:
        return self.of.stops[self.number - 1]

    @property
    def is_last(self) -> bool:
        return self.number == len(self.of.stops)

    def moved(self, by: int) -> TourPlace:
        """Return the stop so many further on, the first or last where there is none."""
        return TourPlace(self.tour, max(1, min(self.number + by, len(self.of.stops))))


def _place_of(text: str) -> TourPlace | None:
    name, _dot, number_text = text.partition(".")
    number = whole(number_text)
    rule = _("{names}, with a stop, such as translate.3", names=one_of(TOURS))
    if name not in TOURS or number is None:
        raise Unfit(rule)
    place = TourPlace(name, 1).moved(number - 1)
    if place.number != number:
        raise Unfit(rule, place)
    return place


TOUR: Written[TourPlace | None] = Written(
    "tour",
    first=None,
    key="tour-place",
    reader=_place_of,
    writer=lambda place: place.text if place else "",
)
"""The address says ``tour=translate.3`` on every page until the tour is left."""


def _current() -> TourPlace | None:
    """Return the stop of the session, None without a tour."""
    place: TourPlace | None = st.session_state.get(TOUR.key)
    return place


def _follow_link() -> TourPlace | None:
    """Return the stop of the session, which a link may change; say it in the address."""
    place, text = _current(), view_link.opened(TOUR)
    if text is not None:
        place, problem = TOUR.follow(text, place)
        if problem:
            state.notify(problem)
        st.session_state[TOUR.key] = place
        _choose_run(place, state.linked_run_id())
    view_link.say(TOUR, place)
    return place


def _leave() -> None:
    """Leave the tour, also in the address."""
    for key in (TOUR.key, _RUN, _NOTE):
        st.session_state.pop(key, None)
    view_link.say(TOUR, None)


def _run_of(place: TourPlace) -> Run | None:
    """Return the run of the tour: the chosen one, else the recorded one, if there is any."""
    for run_id in (st.session_state.get(_RUN), place.of.recorded):
        run = _found(run_id)
        if run is not None and place.of.fits(run.experiment):
            return run
    return None


def _choose_run(place: TourPlace | None, run_id: str | None) -> None:
    """Lead over a run if the tour can, else over the recorded one."""
    run = None if place is None else _found(run_id)
    fits = run is not None and place is not None and place.of.fits(run.experiment)
    st.session_state[_RUN] = run.id if fits and run is not None else None


def _found(run_id: str | None) -> Run | None:
    if not run_id:
        return None
    try:
        run = runs_access.open_run(run_id)
    except RunNotFound:
        return None
    return None if run.problem is not None else run


def _answer(place: TourPlace, run: Run) -> int | None:
    """Return the index of the option that was chosen first, None before that."""
    index: int | None = st.session_state.get(_ANSWERS, {}).get((place, run.id))
    return index


def bar() -> None:
    """Draw the bar of the tour that this session is on, if any."""
    place = _follow_link()
    with st.container(key="tour"):
        if place is None:
            return
        run = _run_of(place)
        if run is None:
            _leave()
            state.notify(_(_NO_RUN))
            return
        if place.stop.starts and state.page() == "train":
            own = _found(state.current_run_id())  # that was started from the page meanwhile
            is_new = own is not None and own.id != run.id and not own.meta.recorded
            if own and is_new and place.of.fits(own.experiment) and visitors.lists(own):
                _open(place.moved(1), own)
        waits = place.stop.waits is not None and run.status.is_active
        st.fragment(_bar, run_every=_TICK if waits else None)(place, run)


def start(name: str, label: str) -> None:
    """Draw a button that opens the first stop of a tour.

    A link from Home to Home would not change the browser's address.
    """
    if st.button(label, icon=":material/tour:", type="tertiary", key=f"tour-{name}"):
        _begin(TourPlace(name, 1))


def resume() -> None:
    """Draw a button that goes on with the tour that this browser has left, if any."""
    tours = {tour.name: (_(tour.title), len(tour.stops)) for tour in TOURS.values()}
    left = component.resume(tours, is_shown=_current() is None, key="tour-resume")
    if left is not None:
        place, problem = TOUR.follow(left[0], None)
        if place is not None and not problem:
            _begin(place, left[1])


def _begin(place: TourPlace, run_id: str | None = None) -> NoReturn:
    """Open a stop, over a run if the tour can lead over it, else over the recorded one."""
    _choose_run(place, run_id)
    run = _run_of(place)
    if run is not None:
        _open(place, run)
    state.notify(_(_NO_RUN))
    st.rerun()


def _bar(place: TourPlace, run: Run) -> None:
    page = page_table.PAGES[place.stop.page]
    is_elsewhere = state.page() != page.url_path
    is_away = is_elsewhere or (page.shows_run and state.current_run_id() != run.id)
    waited, question, problem = (None, None, "") if is_away else _read(place, run)
    # whether what the question hides may be seen
    is_told = question is None or (
        _answer(place, run) is not None and question.answer in question.options
    )
    is_live, run_id = not run.meta.recorded, run.id
    answers = st.session_state.setdefault(_ANSWERS, {})
    pressed = tour_bar(
        place=place.text,
        run=run.id,
        label=_("Tour: {title}", title=_(place.of.title)),
        count=_("{n} of {count}", n=place.number, count=len(place.of.stops)),
        title=_(place.stop.title),
        text=_("This stop is on the page {page}.", page=_(page.title))
        if is_elsewhere
        else _("This stop is about another run: {name}.", name=run.meta.name)
        if is_away
        else paragraph(f"tour/{place.tour}-{place.stop.name}"),
        wait=""
        if is_away
        else st.session_state.get(_NOTE) or problem or _wait_words(place, run, waited, is_told),
        happened=_("You can go on.")
        if is_live and waited is not None and waited.has_happened
        else "",
        question=None if question is None else _asked(place, run, question),
        outlines=() if is_away else place.stop.outlines,
        veils=() if is_away or is_told or run.status.is_active else place.stop.veils,
        buttons=(TourButton("return", _("Go back to the stop"), is_primary=True),)
        if is_away
        else _buttons(place, run, waited),
        on_answer=lambda index: answers.setdefault((place, run_id), index),
        key="tour-bar",
    )
    if pressed is not None:
        _act(pressed, place, run)


def _read(place: TourPlace, run: Run) -> tuple[Waited | None, Question | None, str]:
    """Return what the stop waits for and asks, and what went wrong."""
    stop = place.stop
    try:
        on = TourRun(run, runs_access.curves(run), _answer(place, run) is not None)
        waited = None if stop.waits is None else stop.waits(on)
        if stop.waits is not None and waited is not None and not waited.has_happened:
            on = replace(on, is_answered=False)  # nothing is measured that changes meanwhile
        return waited, None if stop.asks is None else stop.asks(on), ""
    except (OSError, ValueError) as error:
        return None, None, _(error)


def _asked(place: TourPlace, run: Run, question: Question) -> dict[str, Any]:
    options = question.options
    chosen = _answer(place, run)
    right, verdict = None, ""
    if chosen is not None and chosen < len(options):
        if question.answer in options:
            right = options.index(question.answer)
            why = _(question.because)
            verdict = _("Right. {why}", why=why) if chosen == right else _("No. {why}", why=why)
        else:
            verdict = _("Let’s see: the answer comes from the run.")
    return {
        "text": _(question.text),
        "options": [_(one) for one in options],
        "chosen": chosen,
        "right": right,
        "verdict": verdict,
    }


def _wait_words(place: TourPlace, run: Run, waited: Waited | None, is_told: bool) -> str:
    """Return what the stop waits for, or, once its question is answered, what has happened."""
    if place.stop.starts:
        why = why_recorded()
        return _("{why} The tour follows the recorded run.", why=why) if why else ""
    if waited is None:
        return ""
    if waited.has_happened:
        return _(waited.sentence) if is_told else ""
    if run.status.is_active:
        return _("Waiting … {so_far}", so_far=_(waited.sentence))
    return _("This run ended before that. {so_far}", so_far=_(waited.sentence))


def _buttons(place: TourPlace, run: Run, waited: Waited | None) -> tuple[TourButton, ...]:
    stop = place.stop
    made = [TourButton("back", _("Back"))] if place.number > 1 else []
    if stop.starts:  # a training of one's own, where the visitor can
        goes_on = _("Use the recorded run") if run.meta.recorded else _("Next")
        if why_recorded():
            return (*made, TourButton("next", goes_on, is_primary=True))
        train = _("Train it ({time})", time=shown_run.preset_time(place.of.preset))
        return (*made, TourButton("next", goes_on), TourButton("train", train, is_primary=True))
    is_waiting = waited is not None and not waited.has_happened
    if is_waiting and not run.meta.recorded:
        made.append(TourButton("recorded", _("Use the recorded run")))
    is_off = is_waiting and not run.meta.recorded
    if not place.is_last:
        return (*made, TourButton("next", _("Next"), is_primary=True, is_off=is_off))
    other = _OTHER.get(place.tour)
    if other is not None:
        made.append(TourButton("other", _("Next tour: {title}", title=_(TOURS[other].title))))
    return (*made, TourButton("finish", _("Finish"), is_primary=True))


def why_recorded() -> str:
    """Return why the tour follows the recorded run, "" where the visitor can train one now."""
    why_not = visitors.why_not()
    if why_not:
        return why_not
    queue = runs_access.queue()
    if queue.n_running() >= queue.max_running:
        return _("All workers are busy.")
    return ""


def _act(pressed: str, place: TourPlace, run: Run) -> None:
    match pressed:
        case "next":
            _open(place.moved(1), run)
        case "back":
            _open(place.moved(-1), run)
        case "return":
            _open(place, run)
        case "recorded":
            _open(place, runs_access.store().get(place.of.recorded))
        case "train":
            _train(place)
        case "other":
            _begin(TourPlace(_OTHER[place.tour], 1))
        case _:
            _leave()
            if pressed == "finish":
                state.notify(paragraph("tour/over"))
            st.rerun()


def _train(place: TourPlace) -> None:
    preset = PRESETS[place.of.preset]
    try:
        run = run_actions.enqueue(
            Start(preset.experiment, state.device(), _(preset.label), preset.name)
        )
    except (ValueError, OSError) as error:
        st.session_state[_NOTE] = _(error)  # until the tour goes on
        st.rerun()
    _open(place.moved(1), run)


def _open(place: TourPlace, run: Run) -> NoReturn:
    """Open the page of a stop."""
    st.session_state[TOUR.key], st.session_state[_RUN] = place, run.id
    st.session_state.pop(_NOTE, None)
    path, query = address(place.stop, run)
    st.switch_page(path, query_params={**query, TOUR.query: place.text})
    raise AssertionError("switch_page ends the script")
