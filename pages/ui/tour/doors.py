"""The ways into a tour: its beginning, and on Home where this browser has left one."""

from __future__ import annotations

import streamlit as st

from pages.components import tour as component
from pages.i18n import _
from pages.ui.tour import bar, session
from pages.ui.tour.session import TourPlace
from pages.ui.tour.stops import TOURS


def start(name: str, label: str) -> None:
    """Draw a button that opens the first stop of a tour.

    A link from Home to Home would not change the browser's address.
    """
    if st.button(label, icon=":material/tour:", type="tertiary", key=f"tour-{name}"):
        bar.begin(TourPlace(name, 1))


def resume() -> None:
    """Draw a button that goes on with the tour that this browser has left, if any."""
    tours = {tour.name: (_(tour.title), len(tour.stops)) for tour in TOURS.values()}
    left = component.resume(tours, is_shown=session.current() is None, key="tour-resume")
    if left is not None:
        bar.resume(*left)
