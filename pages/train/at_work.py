"""A model at work on one example: that of the draft with its first weights, or an opened one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pages.app import show, state
from pages.app.navigation import page_table
from pages.i18n import _
from tfm_core import byte_cache
from tfm_core.choices.config import Experiment
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.trace.subject import Subject

_STEP = "play-step"


def of_draft(experiment: Experiment | None) -> None:
    """Draw the picture, or a hint where the settings do not fit."""
    if experiment is None:
        st.caption(_("The picture appears once all settings are valid."))
        return
    try:
        subject = _untrained(experiment.model_dump_json())
    except ValueError as error:
        show.problem(error)
        return
    st.caption(_("This model before training: its weights are random."))
    _draw(subject)


def of_run(run: Run) -> None:
    """Draw the picture of a model that was trained elsewhere, on its first example."""
    try:
        subject = _opened(str(run.folder))
    except ValueError as error:
        show.problem(error)
        return
    _draw(subject)


def _draw(subject: Subject) -> None:
    from pages.components import picture as model_picture
    from tfm_core.trace.picture import picture as picture_of

    def explain(name: str, _block: int) -> None:
        st.session_state[_STEP] = name

    try:
        drawn = picture_of(subject, 0)
    except ValueError as error:
        show.problem(error)
        return
    model_picture.draw(drawn, theme=state.theme(), on_step=explain, key="train-model")
    if (step := st.session_state.pop(_STEP, None)) is not None:
        st.switch_page(page_table.path_of("walk"), query_params={"part": step})


@byte_cache.cached
def _untrained(text: str) -> Subject:
    from tfm_core.trace.subject import subject

    return subject(Experiment.model_validate_json(text))


@byte_cache.cached
def _opened(folder: str) -> Subject:
    from tfm_core.inspect.attention.trained import model_of
    from tfm_core.trace.subject import subject

    run = Run(Path(folder))
    probe = run.probe()
    return subject(run.experiment, model_of(run)[0], items=probe.items, images=probe.images)
