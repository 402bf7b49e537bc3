"""Where it fails: which answer is given for which, the worst errors, and how sure it was."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.i18n import _
from pages.mistakes import controls, evaluated, gallery, matrix, parts, which, words
from pages.mistakes.link import SHOW
from pages.ui import fitting_run, recorded, show, view_link
from tfm_core.inspect.errors.answers import Answers, steps_of
from tfm_core.inspect.errors.confusion import confusion
from tfm_core.runs.run import Run

PARTS = {
    "groups": parts.groups,
    "tokens": parts.tokens,
    "calibration": parts.how_sure,
    "scores": parts.scores,
}


def page() -> None:
    """Judge the current run, or the first there is, on its validation set."""
    show.header("mistakes")
    run = which.run()
    if run is None:
        show.empty(_("No run to judge yet: train one."), _("Train a model"), "train")
        return
    if run.problem:
        which.unfit(run, run.problem)
        return
    if not run.meta.recorded:  # of one that is, the summary and the foot say so
        fitting_run.say(run)
    controls.begin(run)
    try:
        steps = steps_of(run)
        with st.container(key="mistakes-step-area", horizontal=True, vertical_alignment="center"):
            with st.container(width=360):
                step = controls.step(run, steps)
            said = st.container(width="stretch")
        found = evaluated.answers(run, step)
    except ValueError as error:
        which.unfit(run, error)
        return
    if found is None:
        said.markdown(words.measured_then(run, step))
        return
    said.markdown(words.summary(run, found))
    _draw(run, found)
    recorded.note(run, key="mistakes")
    if step != steps[-1]:  # somebody looks back: the other steps are asked meanwhile
        at = steps.index(step)
        evaluated.evaluations().ask_ahead(
            run, tuple(sorted(steps, key=lambda one: abs(steps.index(one) - at)))
        )


def _draw(run: Run, found: Answers) -> None:
    cell, counted = controls.cell(), confusion(found)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        matrix.matrix(found, counted, cell)
    with right:
        names = parts.offered(run, found)
        with st.container(horizontal=True, gap="small"):
            offered = replace(SHOW, names=names)
            part = view_link.choice(_("What is shown"), offered, is_labelled=False)
            order = gallery.order() if part == "worst" else ""
        if part == "worst":
            gallery.gallery(run, found, counted, cell, order)
        else:
            PARTS[part](run, found)


page()
