"""Markov chains in context: the loss falls in steps, and each step is a way to count."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from pages.discover import recipe
from pages.i18n import _, paragraph
from pages.ui import show
from tfm_core.inspect.discover import measured, transitions
from tfm_core.inspect.discover.phenomenon import CHAINS, Phenomenon
from tfm_core.inspect.experiments.result import ExperimentRuns
from tfm_core.runs.run import Run


def look(chosen: Phenomenon, trained: ExperimentRuns) -> None:
    """Show the staircase on its floors, and what uniform attention in layer 1 leaves of it."""
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _landings(chosen, trained)
        run = recipe.shown_run(chosen, trained)
        if run is not None and not run.status.is_active and run.has_checkpoint:
            _uniform(run)


def _landings(chosen: Phenomenon, trained: ExperimentRuns) -> None:
    """Show the floors, and when each model lands on each of them."""
    floors = chosen.levels(chosen.base)
    columns = {_("Floor"): [str(_(label)) for label in floors], _("Loss"): _losses(floors.values())}
    for arm in chosen.arms:
        found = recipe.ended(trained, arm, chosen.metrics[0])
        if found:
            steps = [transitions.landings(x, loss, [*floors.values()]) for x, loss in found]
            reached = [
                transitions.over_runs(of_floor).words for of_floor in zip(*steps, strict=True)
            ]
            columns[_("{arm}: from step", arm=_(arm.label))] = ["", *reached]
    show.facts([*zip(*columns.values(), strict=True)], [*columns])
    st.caption(paragraph("discover/chains-rule"))


def _uniform(run: Run) -> None:
    st.markdown(_("**Attention of a layer replaced by uniform attention**"))
    rows = [
        [words, *_losses([measured.with_uniform(run, layers).loss])]
        for words, layers in (
            (_("none"), ()),
            (_("layer {layer}", layer=1), (0,)),
            (_("layer {layer}", layer=2), (1,)),
        )
    ]
    show.facts(rows, [_("Replaced"), _("Loss")])
    st.caption(paragraph("discover/chains-uniform"))


def _losses(losses: Iterable[float]) -> list[str]:
    return [f"{loss:.3f}" for loss in losses]


recipe.page(CHAINS, look)
