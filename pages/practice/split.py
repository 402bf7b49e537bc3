"""Step 1: the three splits, and how precise a small one is."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import N_, _
from pages.practice import steps
from pages.practice.steps import Runs
from pages.ui import show
from tfm_core.inspect.compare import conclusions
from tfm_core.inspect.practice import lesson
from tfm_core.inspect.practice.lesson import Splits
from tfm_core.plots.examples import practice as plots

_QUESTION = "practice-question"
_ANSWERS = {
    "train": N_("Training"),
    "validation": N_("Validation"),
    "test": N_("Test"),
}


def view(runs: Runs) -> None:
    try:
        with st.spinner(_("Counting the pictures …")):
            splits = _splits()
    except ValueError as error:
        show.problem(error)
        return
    left, right = st.columns([3, 2])
    with left:
        show.figure(
            plots.shares(splits),
            _("Pictures in two splits: {n}.", n=splits.shared),
            key="practice-shares",
        )
    with right:
        # narrow columns: all of them fit a phone
        form = {_("pictures"): st.column_config.NumberColumn(format="localized")}
        st.dataframe(_roles(splits), hide_index=True, key="practice-roles", column_config=form)
        _width()
    _question()
    show.code(conclusions.wilson)


def _roles(splits: Splits) -> pd.DataFrame:
    totals = splits.totals
    return pd.DataFrame(
        [
            (_("training"), totals["train"], _("the weights"), _("in every step")),
            (_("validation"), totals["validation"], _("you"), _("every 50 steps")),
            (_("test"), totals["test"], _("nobody"), _("once")),
        ],
        columns=[_("split"), _("pictures"), _("who learns"), _("seen")],
    )


def _width() -> None:
    n = st.select_slider(
        _("Pictures in the validation split"),
        [20, 50, 100, 200, 500, 1000, 2000, 5000, 10000],
        500,
        key="practice-n",
        format_func=lambda value: f"{value:,}",
    )
    low, high = conclusions.wilson(round(0.9 * n), n)
    st.markdown(
        _(
            "90 % right of {n} means **{low}** to **{high}**.",
            n=f"{n:,}",
            low=show.percent(low),
            high=show.percent(high),
        ),
        help=_("95 % confidence (Wilson 1927)."),
    )


def _question() -> None:
    answer = st.radio(
        _("Which split decides when to stop?"),
        list(_ANSWERS),
        format_func=lambda name: _(_ANSWERS[name]),
        index=None,
        key=_QUESTION,
        horizontal=True,
        persist_state="session",
    )
    if answer == "validation":
        st.success(_("Right: choosing is what it is for."), icon=":material/check_circle:")
        steps.mark_done("split")
    elif answer == "train":
        st.info(_("No: its loss falls by memorising too."))
    elif answer == "test":
        st.info(_("No: it can no longer test what it chose."))


@st.cache_data(show_spinner=False)
def _splits() -> Splits:
    return lesson.splits_of(lesson.guided("plain"))
