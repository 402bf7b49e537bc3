"""Markov chains in context: the loss falls in steps, and each step is a way to count."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.runs import shown_run
from pages.findings import recipe
from pages.i18n import _, paragraph
from tfm_core.runs.run import Run
from tfm_core.studies import chains
from tfm_core.studies.phenomenon import Phenomenon, landings, over_runs
from tfm_core.studies.study import StudyRuns


def draw(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the staircase on its floors, and what uniform attention in layer 1 leaves of it."""
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _landings(chosen, trained)
        run = recipe.shown_run(chosen, trained)
        if recipe.is_done(run):
            _uniform(run)
    _line()


def _landings(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the floors, and when each model lands on each of them."""
    floors = chosen.known(run.experiment.seed for run in trained.runs)
    columns = {_("Floor"): [str(_(label)) for label in floors], _("Loss"): _losses(floors.values())}
    for arm in chosen.arms:
        curves = recipe.ended(trained, arm, chosen.metrics[0])
        if curves:
            steps = [
                landings(x, loss, [*chosen.known([seed]).values()])
                for seed, (x, loss) in curves.items()
            ]
            reached = [over_runs(of_floor) for of_floor in zip(*steps, strict=True)]
            columns[_(arm.label)] = ["", *reached]
    if len(columns) > 2:
        st.markdown(_("**Shown:** the step at which each model reaches each floor."))
    show.facts([*zip(*columns.values(), strict=True)], [*columns])
    st.caption(paragraph("discover/chains-rule"))


def _uniform(run: Run) -> None:
    st.markdown(_("**Uniform attention in one layer**"))
    rows = [
        [label, *_losses([chains.with_uniform(run, layers).loss])]
        for label, layers in (
            (_("none"), ()),
            (_("layer {layer}", layer=1), (0,)),
            (_("layer {layer}", layer=2), (1,)),
        )
    ]
    show.facts(rows, [_("Replaced"), _("Loss")])
    st.caption(paragraph("discover/chains-uniform"))


def _line() -> None:
    """Show the same of another task in context: the error after each number of examples."""
    st.markdown(_("**Another task:** fit a line, y = w·x. How many examples does the model need?"))
    st.caption(paragraph("discover/chains-line"))
    if not any(
        chains.is_lines(run.experiment) for run in visitors.available_runs() if run.problem is None
    ):
        shown_run.preset_button("lines", key="chains-train-line")
        return
    run = recipe.any_run(chains.is_lines, of="line")
    if run is None or not run.has_checkpoint:
        return
    errors = chains.errors_of(run)
    n = np.arange(len(errors)).astype(float)
    names = {
        "model": _("the model"),
        "bayes": _("Bayes: the lowest possible"),
        "least_squares": _("least squares"),
        "zero": _("always 0"),
    }
    recipe.draw(
        {
            _("mean squared error"): {
                label: (n, errors[name].to_numpy()) for name, label in names.items()
            }
        },
        _("examples so far"),
        key="discover-line",
        name=_("Error by the number of examples"),
        is_share=False,
    )


def _losses(losses: Iterable[float]) -> list[str]:
    return [f"{loss:.3f}" for loss in losses]
