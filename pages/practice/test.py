"""Step 7: validation against test, and what choosing by the test would do."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.practice import steps
from pages.practice.steps import NAMES, Runs
from pages.ui import show
from tfm_core.inspect.compare import conclusions
from tfm_core.inspect.practice.evaluation import Evaluation
from tfm_core.plots.examples import practice as plots
from tfm_core.sentences import points

_TRIES = (1, 2, 5, 10, 20, 50, 100)


def view(runs: Runs) -> None:
    picked = steps.chosen(runs)
    if picked is None:
        return
    if not steps.is_marked("test"):
        st.button(
            _("Open the test set"),
            type="primary",
            icon=":material/lock_open:",
            key="practice-open",
            on_click=steps.mark,
            args=("test",),
            help=_("After this, change nothing."),
        )
        return
    try:
        promised = steps.evaluated(picked[1], "validation")
        tested = steps.evaluated(picked[1], "test")
    except ValueError as error:
        show.problem(error)
        return
    rows = [
        (label, evaluated.split, evaluated.n_right, len(evaluated.labels))
        for label, evaluated in ((_("validation"), promised), (_("test"), tested))
    ]
    show.figure(
        plots.promises(rows), _("Mark: measured; line: 95% confidence."), key="practice-promise"
    )
    st.markdown(_verdict(_(NAMES[picked[0]]), promised, tested))
    _luck(tested)
    show.code(conclusions.best_of)


def _verdict(name: str, promised: Evaluation, tested: Evaluation) -> str:
    low, high = tested.interval
    words = paragraph(
        "practice/tested",
        name=name,
        promise=show.percent(promised.accuracy),
        truth=show.percent(tested.accuracy),
        low=show.percent(low),
        high=show.percent(high),
        n=f"{len(tested.labels):,}",
    )
    if promised.accuracy > high:
        verdict = _("Validation lies above the interval: too good to be true.")
    elif promised.accuracy < low:
        verdict = _("Validation lies below the interval: easier test pictures, by chance.")
    else:
        verdict = _("Validation lies within the interval: it was honest.")
    return f"{words} {verdict}"


def _luck(tested: Evaluation) -> None:
    tries = st.select_slider(
        _("Report the best of this many equal models"), _TRIES, 20, key="practice-tries"
    )
    n = len(tested.labels)
    expected = conclusions.best_of(tries, tested.accuracy, n)
    st.markdown(
        _(
            "You would report about **{best}** instead of {truth}: {gain:+.1f} points of luck.",
            best=show.percent(expected),
            truth=show.percent(tested.accuracy),
            gain=points(tested.accuracy, expected),
        ),
        help=_("Expected best of that many binomial draws."),
    )
