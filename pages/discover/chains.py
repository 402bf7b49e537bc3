"""Markov chains in context: the loss falls in steps, and each step is a way to count."""

from __future__ import annotations

import streamlit as st

from pages.discover import recipe
from pages.i18n import _, paragraph
from pages.ui import show
from tfm_core.inspect.discover import measured
from tfm_core.inspect.discover.phenomenon import CHAINS, Phenomenon
from tfm_core.inspect.experiments.result import ExperimentRuns
from tfm_core.runs.run import Run


def look(chosen: Phenomenon, trained: ExperimentRuns) -> None:
    """Show the staircase on its floors, and what uniform attention in layer 1 leaves of it."""
    recipe.curves(chosen, trained)
    run = recipe.shown_run(chosen, trained)
    if recipe.is_done(run):
        _uniform(chosen, run)


def _uniform(chosen: Phenomenon, run: Run) -> None:
    st.markdown(_("**Attention of a layer replaced by uniform attention**"))
    rows = [
        [words, f"{measured.with_uniform(run, layers).loss:.3f}"]
        for words, layers in (
            (_("none"), ()),
            (_("layer {layer}", layer=1), (0,)),
            (_("layer {layer}", layer=2), (1,)),
        )
    ]
    floors = [[_(label), f"{value:.3f}"] for label, value in chosen.levels(run.experiment).items()]
    left, right = st.columns(2, gap="medium")
    with left:
        show.facts(rows, [_("Replaced"), _("Loss")])
    with right:
        show.facts(floors, [_("Floor"), _("Loss")])
    st.caption(paragraph("discover/chains-uniform"))


recipe.page(CHAINS, look)
