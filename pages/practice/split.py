"""Step 1: the three splits, and how precise a small one is."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.practice import steps
from pages.practice.steps import Runs
from pages.ui import show
from pages.ui.model import question
from tfm_core.inspect.compare import conclusions
from tfm_core.inspect.practice import lesson, questions
from tfm_core.plots.examples.own_data import balance

_CHOOSING = "choosing"


def view(runs: Runs) -> None:
    try:
        with st.spinner(_("Counting the pictures …")):
            counts, n_shared = _splits()
    except ValueError as error:
        show.problem(error)
        return
    left, right = st.columns([3, 2])
    with left:
        show.figure(
            balance(list(counts), counts.to_numpy().T, height=320),
            _("Pictures in two splits: {n}.", n=n_shared),
            key="practice-shares",
        )
    with right:
        # narrow columns: all of them fit a phone
        form = {_("pictures"): st.column_config.NumberColumn(format="localized")}
        st.dataframe(_roles(counts), hide_index=True, key="practice-roles", column_config=form)
        _width()
    question.ask(questions.about_choosing(), _CHOOSING)
    if question.is_revealed(_CHOOSING):
        steps.mark_done("split")
    show.code(conclusions.wilson)


def _roles(counts: pd.DataFrame) -> pd.DataFrame:
    totals = counts.sum(axis=1)
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
            "90% right of {n} means **{low}** to **{high}**.",
            n=f"{n:,}",
            low=show.percent(low),
            high=show.percent(high),
        ),
        help=_("95% confidence (Wilson 1927)."),
    )
    question.check({"precision": questions.about_precision(n)}, of=f"{n}")


@st.cache_data(show_spinner=False)
def _splits() -> tuple[pd.DataFrame, int]:
    return lesson.splits_of(lesson.guided("plain"))
