"""What moves on Home without a click: a recorded translator, and a digit that is read."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from pages.home.own_digit import own_digit
from pages.i18n import _
from pages.ui import runs_access
from pages.ui.stage_view import prepare, stage
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

TRANSLATOR, DIGITS = "recorded-korean", "recorded-digits"
_WIDTHS = 3, 2


def hero() -> None:
    """Show the recorded translator and the digit board, if these runs exist."""
    translator, digits = _recorded(TRANSLATOR), _recorded(DIGITS)
    if translator is not None and digits is not None and digits.weight_steps():
        left, right = st.columns(_WIDTHS, gap="medium")
        with left:
            _translation(translator)
        with right:
            _digit(digits)
    elif translator is not None:
        _translation(translator)


def warm() -> None:
    translator = _recorded(TRANSLATOR)
    if translator is not None:
        prepare(translator)


def _translation(run: Run) -> None:
    with st.container(key="home-translation"):
        st.header(_("Recording: a model learns English to Korean"), anchor=False)
        stage(run, key="home-stage", autoplay=True, loop=True, compact=True)


def _digit(run: Run) -> None:
    with st.container(key="home-own-digit"):
        st.header(_("Draw a digit"), anchor=False)
        own_digit(run)


def _recorded(run_id: str) -> Run | None:
    with suppress(RunNotFound):
        return runs_access.store().get(run_id)
    return None
