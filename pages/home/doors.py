"""The next steps from Home: train it yourself, watch, try, or learn."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from pages.app.accounts import visitors
from pages.app.lessons import bar
from pages.app.navigation import page_table, ticks
from pages.app.navigation.page_table import WAY
from pages.app.runs import run_actions, run_time, shown_run
from pages.app.typed import escape
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
    Door("words", N_("**Learn** step by step"), ":material/school:"),
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
            st.page_link(
                page_table.path_of(page),
                label=_(door.label),
                icon=door.icon,
                query_params=door.query,
                width="content",
            )


def _train_button() -> None:
    why_not = visitors.why_not()
    name, time = _(PRESETS[FIRST].label), run_time.takes_now(PRESETS[FIRST].experiment)
    if st.button(
        _("Train it yourself ({time})", time=shown_run.preset_time(FIRST)),
        key="begin",
        type="primary",
        icon=":material/play_arrow:",
        disabled=bool(why_not),
        help=escape(why_not) or _("“{name}” from random weights: {time}.", name=name, time=time),
    ):
        run_actions.start_preset(FIRST)
