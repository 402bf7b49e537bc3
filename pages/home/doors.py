"""The next steps from Home: train it yourself, watch, try, or learn."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from pages.app import show
from pages.app.lessons import bar
from pages.app.navigation import ticks
from pages.app.navigation.page_table import WAY
from pages.app.runs import run_time, shown_run
from pages.home.hero import TRANSLATOR
from pages.i18n import N_, _
from tfm_core.choices.presets import PRESETS

FIRST = "translate"
"""The preset of the main button: heads form within seconds."""


@dataclass(frozen=True, slots=True)
class Door:
    """A link to a page: its label in Markdown and its query."""

    page: str
    label: str
    icon: str
    query: dict[str, str] = field(default_factory=dict)


DOORS = (
    Door(
        "train",
        N_("**Watch** every head and curve of it"),
        ":material/visibility:",
        {"run": TRANSLATOR},
    ),
    Door(
        "attention",
        N_("**Try** your own sentence"),
        ":material/edit:",
        {"run": TRANSLATOR, "example": "own"},
    ),
    Door("numbers", N_("**Learn** step by step"), ":material/school:"),
)


def doors() -> None:
    """Draw the next steps as one row, the training first."""
    with st.container(key="doors", horizontal=True, vertical_alignment="center", gap="medium"):
        with st.container(width="content"):
            st.fragment(_train_button)()  # a press redraws only this part
        bar.start("translate", _("**Take the tour**"))
        bar.resume()
        for door in DOORS:
            page = ticks.upcoming().name if door.page == WAY[0].name else door.page
            show.link(page, _(door.label), door.query, icon=door.icon)


def _train_button() -> None:
    name, time = _(PRESETS[FIRST].label), run_time.takes_now(PRESETS[FIRST].experiment)
    shown_run.preset_button(
        FIRST,
        key="begin",
        label=_("Train it yourself ({time})", time=shown_run.preset_time(FIRST)),
        help=_("“{name}” from random weights: {time}.", name=name, time=time),
        is_first=True,
    )
