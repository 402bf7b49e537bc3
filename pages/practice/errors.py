"""Step 5: which digit is taken for which, class by class, and the pictures themselves."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.i18n import _
from pages.practice import steps
from pages.practice.steps import Runs
from pages.ui import show, state
from tfm_core.inspect.practice.judgement import Judgement
from tfm_core.plots import practice as plots
from tfm_core.plots.predictions import picture_cards

_SHOWN = 20


def view(runs: Runs) -> None:
    """Judge the chosen model on the validation split."""
    found = steps.chosen(runs)
    if found is None:
        return
    try:
        judged = steps.judged(found[1], "validation")
    except ValueError as error:
        show.problem(error)
        return
    left, right = st.columns(2)
    with left:
        show.figure(
            plots.confusion(judged, state.theme()),
            _("Validation split, truth down, answer across: colour is errors only."),
            key="practice-confusion",
        )
    with right:
        show.figure(
            plots.by_class(judged),
            _("Accuracy of each class; the bar holds the true share with 95 % confidence."),
            key="practice-by-class",
        )
    _question(judged)
    _pictures(judged)
    show.code(Judgement)


def _question(judged: Judgement) -> None:
    counts = judged.confusion()
    share = counts.diagonal() / np.maximum(counts.sum(1), 1)
    answer = st.pills(
        _("Which digit does it get wrong most often?"),
        list(judged.class_names),
        key="practice-weakest",
    )
    if answer is None:
        return
    place = judged.class_names.index(str(answer))
    if share[place] > share.min():
        st.info(_("{n}: {share} right. There is a lower one.").format(
            n=answer, share=show.percent(float(share[place]))))  # fmt: skip
        return
    st.success(
        _("Yes: {right} of {n} pictures of a {digit} are told right.").format(
            right=counts[place, place], n=counts[place].sum(), digit=answer
        ),
        icon=":material/check_circle:",
    )
    steps.mark_done("errors")


def _pictures(judged: Judgement) -> None:
    places = judged.wrong(_SHOWN)
    st.markdown(
        _("**{n}** of {all} went wrong; the surest first:").format(
            n=len(judged.labels) - judged.n_right, all=f"{len(judged.labels):,}"
        )
    )
    if len(places):
        st.html(
            picture_cards(
                judged.images[places],
                judged.labels[places].tolist(),
                judged.probabilities[places],
                judged.class_names,
            )
        )
