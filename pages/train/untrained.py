"""The model of the draft at work on one example, with its first weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.i18n import _
from pages.ui import show, state
from pages.ui.navigation import page_table
from tfm_core import byte_cache
from tfm_core.config import Experiment

if TYPE_CHECKING:
    from tfm_core.inspect.walk.forward import Subject

_STEP = "play-step"


def picture(experiment: Experiment | None) -> None:
    """Draw the picture, or a hint where the settings do not fit."""
    from pages.components import picture as model_picture
    from tfm_core.inspect.picture import picture as picture_of

    if experiment is None:
        st.caption(_("The picture appears once all settings are valid."))
        return
    try:
        subject = _subject(experiment.model_dump_json())
        drawn = picture_of(subject, 0)
    except ValueError as error:
        show.problem(error)
        return

    def explain(name: str, _block: int) -> None:
        st.session_state[_STEP] = name

    st.caption(_("This model before training: its weights are random."))
    model_picture.draw(
        drawn,
        theme=state.theme(),
        on_step=explain,
        key="train-model",
    )
    if (step := st.session_state.pop(_STEP, None)) is not None:
        st.switch_page(page_table.path_of("walk"), query_params={"step": step})


@byte_cache.cached
def _subject(text: str) -> Subject:
    from tfm_core.inspect.walk.subject import subject

    return subject(Experiment.model_validate_json(text))
