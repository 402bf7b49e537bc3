"""Home: a recorded run that plays, and three next steps, on one screen."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from pages.app import show
from pages.app.lessons import bar
from pages.app.model.stage_view import prepare, stage
from pages.app.runs import run_time, runs_access, shown_run
from pages.i18n import _
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

TRANSLATOR, DIGITS = "recorded-korean", "recorded-digits"
FIRST = "translate"
"""The preset of the main button: heads form within seconds."""


def film() -> None:
    """Play the recorded translator, if it is there."""
    run = _recorded(TRANSLATOR)
    if run is None:
        return
    st.caption(
        _(
            "A recorded run: a model learns to translate English into Korean. Each square is an "
            "attention head. Rows are the tokens it writes, columns the words it reads; darker "
            "means more attention."
        ),
        width="stretch",
    )
    stage(run, key="home-stage", plays=True)


def doors() -> None:
    """Draw the next steps as one row, the training first."""
    with st.container(key="doors", horizontal=True, vertical_alignment="center", gap="medium"):
        with st.container(width="content"):
            st.fragment(_train_button)()  # a press redraws only this part
        bar.start("translate", _("**Take the tour**"))
        bar.resume()
        if _recorded(DIGITS) is not None:
            query = {"run": DIGITS, "view": "draw"}
            show.link("try", _("**Draw a digit**"), query, icon=":material/draw:")


def _train_button() -> None:
    name, time = _(PRESETS[FIRST].label), run_time.estimate_text_now(PRESETS[FIRST].experiment)
    shown_run.preset_button(
        FIRST,
        key="begin",
        label=_("Train it yourself ({time})", time=shown_run.preset_time(FIRST)),
        help=_("Trains “{name}” from random weights in {time}.", name=name, time=time),
        is_first=True,
    )


def preload() -> None:
    translator = _recorded(TRANSLATOR)
    if translator is not None:
        prepare(translator)


def _recorded(run_id: str) -> Run | None:
    with suppress(RunNotFound):
        return runs_access.store().get(run_id)
    return None


def page() -> None:
    show.header("home")
    film()
    doors()


if __name__ == "__main__":
    page()
