"""The next steps from Home: train it yourself, watch, try, or learn."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from pages.home.hero import TRANSLATOR
from pages.i18n import N_, _
from pages.ui.accounts import visitors
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, shown_run
from pages.ui.typed import escape
from tfm_core.presets import PRESETS

FIRST = "translate"
"""The preset of the main button: heads form within seconds."""


@dataclass(frozen=True, slots=True)
class Door:
    """A link to a page: label, one line of text, and its query."""

    page: str
    label: str
    text: str
    icon: str
    query: dict[str, str] = field(default_factory=dict)


DOORS = (
    Door(
        "train",
        N_("Watch"),
        N_("A recorded training: curves, answers, heads."),
        ":material/visibility:",
        {"run": TRANSLATOR},
    ),
    Door(
        "attention",
        N_("Try"),
        N_("Each head on your own sentence."),
        ":material/edit:",
        {"run": TRANSLATOR, "example": "own"},
    ),
    Door("words", N_("Learn"), N_("Short lessons, from tokens to training."), ":material/school:"),
)


def doors() -> None:
    with st.container(key="doors"):
        begin, *places = st.columns([1.25, 1, 1, 1], gap="medium")
    with begin:
        st.fragment(_train_button)()  # a press redraws only this part
    for place, door in zip(places, DOORS, strict=True):
        with place, st.container(gap=None):
            st.page_link(
                page_table.path_of(door.page),
                label=f"**{_(door.label)}**",
                icon=door.icon,
                query_params=door.query,
            )
            st.caption(_(door.text))


def _train_button() -> None:
    why_not = visitors.why_not()
    with st.container(gap="xxsmall"):
        if st.button(
            _("Now train it yourself"),
            key="begin",
            type="primary",
            icon=":material/play_arrow:",
            width="stretch",
            disabled=bool(why_not),
        ):
            run_actions.start_preset(FIRST)
        if why_not:
            st.caption(escape(why_not))
            return
        name, time = _(PRESETS[FIRST].label), shown_run.preset_time_now(FIRST)
        st.caption(_("“{name}” from random weights: {time}.", name=name, time=time))
