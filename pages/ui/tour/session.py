"""Where a session is on a tour: the stop and the run, also in the address, and the answers."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.address.parameters import Unfit, Written, one_of, whole
from pages.ui.runs import runs_access
from pages.ui.tour.stops import TOURS, Stop, Tour
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

_RUN, _ANSWERS, _NOTE = "tour-run", "tour-answers", "tour-note"


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


def _text_of(place: TourPlace | None) -> str:
    return "" if place is None else place.text


TOUR: Written[TourPlace | None] = Written(
    "tour", first=None, key="tour-place", reader=_place_of, writer=_text_of
)
"""The address says ``tour=translate.3`` on every page until the tour is left."""


def parsed(text: str) -> TourPlace | None:
    """Return the place of a text, None where there is none."""
    try:
        return _place_of(text)
    except Unfit:
        return None


def current() -> TourPlace | None:
    """Return the stop of the session, None without a tour."""
    place: TourPlace | None = st.session_state.get(TOUR.key)
    return place


def follow_link() -> TourPlace | None:
    """Return the stop of the session, which a link may change; say it in the address."""
    place, text = current(), view_link.opened(TOUR)
    if text is not None:
        place, problem = TOUR.follow(text, place)
        if problem:
            state.notify(problem)
        st.session_state[TOUR.key] = place
        choose_run(place, state.linked_run_id())
    view_link.say(TOUR, place)
    return place


def go_to(place: TourPlace, run_id: str) -> None:
    """Go to a stop over a run; its page is still to be opened."""
    st.session_state[TOUR.key] = place
    st.session_state[_RUN] = run_id
    st.session_state.pop(_NOTE, None)


def leave() -> None:
    """Leave the tour, also in the address."""
    for key in (TOUR.key, _RUN, _NOTE):
        st.session_state.pop(key, None)
    view_link.say(TOUR, None)


def run_of(place: TourPlace) -> Run | None:
    """Return the run of the tour: the chosen one, else the recorded one, if there is any."""
    for run_id in (st.session_state.get(_RUN), place.of.recorded):
        run = _found(run_id)
        if run is not None and place.of.fits(run.experiment):
            return run
    return None


def choose_run(place: TourPlace | None, run_id: str | None) -> None:
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


def started_meanwhile(place: TourPlace) -> Run | None:
    """Return the visitor's own run that was started from the page, where the stop offers that."""
    if not place.stop.starts or state.page() != "train":
        return None
    run = _found(state.current_run_id())
    if run is None or run.meta.recorded or not place.of.fits(run.experiment):
        return None
    return run if visitors.lists(run) else None


def answer(place: TourPlace, run: Run) -> int | None:
    """Return the index of the option that was chosen first, None before that."""
    index: int | None = st.session_state.get(_ANSWERS, {}).get((place, run.id))
    return index


def record_answer(place: TourPlace, run_id: str, index: int) -> None:
    st.session_state.setdefault(_ANSWERS, {}).setdefault((place, run_id), index)


def note(sentence: str) -> None:
    """Keep a sentence for the bar until the tour goes on."""
    st.session_state[_NOTE] = sentence


def noted() -> str:
    return str(st.session_state.get(_NOTE, ""))
