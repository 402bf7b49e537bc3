"""Step 5: confusion matrix, accuracy per class, and the wrong pictures."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.practice import steps
from pages.practice.steps import Runs
from pages.ui import show, state
from pages.ui.model import question
from tfm_core.inspect.practice import questions
from tfm_core.inspect.practice.evaluation import Evaluation
from tfm_core.plots.examples import practice as plots
from tfm_core.plots.examples.pictures import picture_cards

_SHOWN = 20


def view(runs: Runs) -> None:
    picked = steps.chosen(runs)
    if picked is None:
        return
    try:
        evaluated = steps.evaluated(picked[1], "validation")
    except ValueError as error:
        show.problem(error)
        return
    left, right = st.columns(2)
    with left:
        show.figure(
            plots.confusion(evaluated, state.theme()),
            _("Validation split: rows true, columns predicted."),
            key="practice-confusion",
        )
    of = f"{picked[1].id} {evaluated.step}"
    with right:
        if question.guess(questions.about_weakest(evaluated), "weakest", of=of):
            show.figure(
                plots.by_class(evaluated),
                _("Accuracy per class, with 95% confidence."),
                key="practice-by-class",
            )
    if question.is_guessed("weakest", of=of):
        steps.mark_done("errors")
    _pictures(evaluated)
    show.code(Evaluation)


def _pictures(evaluated: Evaluation) -> None:
    indices = evaluated.wrong(_SHOWN)
    st.markdown(
        _(
            "**{n}** of {all} wrong, most confident first:",
            n=len(evaluated.labels) - evaluated.n_right,
            all=f"{len(evaluated.labels):,}",
        )
    )
    if len(indices):
        st.html(
            picture_cards(
                evaluated.images[indices],
                evaluated.labels[indices].tolist(),
                evaluated.probabilities[indices],
                evaluated.class_names,
            )
        )
