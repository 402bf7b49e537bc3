"""The bar of a tour: what the stop says, asks and waits for, and where its buttons lead."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import streamlit as st

from pages.components.tour import TourButton, tour_bar
from pages.i18n import N_, _, paragraph
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, runs_access, shown_run
from pages.ui.runs.run_actions import Start
from pages.ui.tour import session
from pages.ui.tour.session import TourPlace
from pages.ui.tour.stops import TOURS, address
from tfm_core.inspect.questions import Question
from tfm_core.inspect.tours.waits import TourRun, Waited
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

_TICK = 1.0  # seconds between looks at what a stop waits for
_NO_RUN = N_("The tour needs a run that this server does not have.")
_OTHER = {"translate": "digit", "digit": "discover"}  # tour -> the one that is offered at its end


def bar() -> None:
    """Draw the bar of the tour that this session is on, if any."""
    place = session.follow_link()
    with st.container(key="tour"):
        if place is None:
            return
        run = session.run_of(place)
        if run is None:
            session.leave()
            state.notify(_(_NO_RUN))
            return
        started = session.started_meanwhile(place)
        if started is not None and started.id != run.id:
            _open(place.moved(1), started)
        waits = place.stop.waits is not None and run.status.is_active
        st.fragment(_bar, run_every=_TICK if waits else None)(place, run)


def begin(place: TourPlace, run_id: str | None = None) -> NoReturn:
    """Open a stop, over a run if the tour can lead over it, else over the recorded one."""
    session.choose_run(place, run_id)
    run = session.run_of(place)
    if run is not None:
        _open(place, run)
    state.notify(_(_NO_RUN))
    st.rerun()


def resume(text: str, run_id: str) -> None:
    """Go on with the tour that a browser has left."""
    place = session.parsed(text)
    if place is not None:
        begin(place, run_id)


def _bar(place: TourPlace, run: Run) -> None:
    page = page_table.PAGES[place.stop.page]
    is_elsewhere = state.page() != page.url_path
    is_away = is_elsewhere or (page.shows_run and state.current_run_id() != run.id)
    waited, question, problem = (None, None, "") if is_away else _read(place, run)
    # whether what the question hides may be seen
    is_told = question is None or (
        session.answer(place, run) is not None and question.answer in question.options
    )
    is_live = not run.meta.recorded
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
        else session.noted() or problem or _wait_words(place, run, waited, is_told),
        happened=_("You can go on.")
        if is_live and waited is not None and waited.has_happened
        else "",
        question=None if question is None else _asked(place, run, question),
        outlines=() if is_away else place.stop.outlines,
        veils=() if is_away or is_told or run.status.is_active else place.stop.veils,
        buttons=(TourButton("return", _("Go back to the stop"), is_primary=True),)
        if is_away
        else _buttons(place, run, waited),
        on_answer=partial(session.record_answer, place, run.id),
        key="tour-bar",
    )
    if pressed is not None:
        _act(pressed, place, run)


def _read(place: TourPlace, run: Run) -> tuple[Waited | None, Question | None, str]:
    """Return what the stop waits for and asks, and what went wrong."""
    stop = place.stop
    try:
        on = TourRun(run, runs_access.curves(run), session.answer(place, run) is not None)
        waited = None if stop.waits is None else stop.waits(on)
        if stop.waits is not None and waited is not None and not waited.has_happened:
            on = replace(on, is_answered=False)  # nothing is measured that changes meanwhile
        return waited, None if stop.asks is None else stop.asks(on), ""
    except (OSError, ValueError) as error:
        return None, None, _(error)


def _asked(place: TourPlace, run: Run, question: Question) -> dict[str, Any]:
    options = question.options
    chosen = session.answer(place, run)
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
            begin(TourPlace(_OTHER[place.tour], 1))
        case _:
            session.leave()
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
        session.note(_(error))
        st.rerun()
    _open(place.moved(1), run)


def _open(place: TourPlace, run: Run) -> NoReturn:
    """Open the page of a stop."""
    session.go_to(place, run.id)
    path, query = address(place.stop, run)
    st.switch_page(path, query_params={**query, session.TOUR.query: place.text})
    raise AssertionError("switch_page ends the script")
