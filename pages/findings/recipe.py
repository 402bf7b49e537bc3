"""What every page of a finding has: runs and their controls, a guess, the curves, the paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeGuard

import plotly.graph_objects as go
import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.model import question
from pages.app.navigation import page_table
from pages.app.runs import comparison, runs_access, trials
from pages.app.tour import bar as tour
from pages.components.live_figure import live_figure
from pages.i18n import _
from tfm_core.inspect.compare.curves import METRICS, track
from tfm_core.inspect.discover.phenomenon import Phenomenon
from tfm_core.inspect.experiments.result import ExperimentRuns, RunIndex
from tfm_core.inspect.experiments.trial import Arm
from tfm_core.plots.kinds import is_crowded_above, reference_line
from tfm_core.plots.training.comparison import hide_after
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent

HEIGHT, _MORE = 300, 80  # pixels of a figure, and of each further panel or many names
BEGINNING = 0.1
"""Which share of a training is seen before the guess."""
Draw = Callable[[Phenomenon, ExperimentRuns], None]


def page(chosen: Phenomenon, look: Draw) -> None:
    """Show a finding. look: draws what its runs show, once there is a run and a guess."""
    show.header(chosen.name)
    trained = RunIndex(visitors.at_hand()).of(chosen)
    watched = trained if trained.runs else RunIndex(runs_access.store().lessons()).of(chosen)
    comparison.follow(trained.runs, partial(_draw, chosen, look, trained, watched))


def _draw(
    chosen: Phenomenon,
    look: Draw,
    trained: ExperimentRuns,
    watched: ExperimentRuns,
    _is_live: bool,
) -> None:
    """Draw the page. watched: the visitor's runs, or the recorded ones where there are none."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        trials.buttons(chosen, trained, stays=True)
        first = shown_run(chosen, watched)
        if first is not None:
            st.page_link(
                page_table.path_of("attention"),
                label=_("Look inside"),
                icon=page_table.PAGES["attention"].icon,
                query_params={"run": first.id},
                width="content",
            )
        tour.start("discover", _("Tour: eight findings"))
    pieces = (
        f":orange[**{text}**]" if is_marked else text
        for text, is_marked in chosen.example(chosen.base)
    )
    st.markdown(_("**For example:** {text}", text=" ".join(pieces)))
    if not question.is_guessed(chosen.name):
        left, right = st.columns(2, gap="medium")
        with left:
            question.guess(chosen.question, chosen.name)
        with right:
            _beginning(chosen, watched)
        _lines(chosen, watched, trained)
        return
    question.guess(chosen.question, chosen.name)
    st.markdown(_("**Expect:** {words}", words=_(chosen.question.because)))
    try:
        look(chosen, watched)
    except ValueError as error:  # files of a run are gone, or damaged
        show.problem(error)
    _lines(chosen, watched, trained)
    cite(chosen.paper, chosen.address, chosen.differs)


def cite(paper: str, address: str, differs: str) -> None:
    """Name the paper that a finding is from, and say what differs here."""
    st.caption(
        _(
            "From [{paper}]({address}). {differs}",
            paper=paper,
            address=address,
            differs=_(differs),
        )
    )


def _lines(chosen: Phenomenon, watched: ExperimentRuns, trained: ExperimentRuns) -> None:
    with st.container(horizontal=True, gap="medium"):
        trials.lines(chosen, watched, stopped=trained.stopped)


def shown_run(chosen: Phenomenon, trained: ExperimentRuns) -> Run | None:
    """Return the run that shows the finding; None where there is none yet."""
    return trained.of_seed(trained.seed).get(chosen.arms[0].name)


def is_done(run: Run | None) -> TypeGuard[Run]:
    """Whether there is a run whose training has ended and whose last weights are kept."""
    return run is not None and not run.status.is_active and run.has_checkpoint


def head_name(layer: int, head: int) -> str:
    """Return what a head is called; both are counted from 0."""
    return _("layer {layer}, head {head}", layer=layer + 1, head=head + 1)


def ended(trained: ExperimentRuns, arm: Arm, metric: str) -> dict[int, tuple[Floats, Floats]]:
    """Return the steps and values (S,) of a metric, by seed, of ended runs of an arm."""
    found = {
        seed: track(runs_access.curves(run), run.experiment, metric, "step")
        for seed, run in trained.by_arm[arm.name].items()
        if not run.status.is_active
    }
    return {seed: (one.x, one.values) for seed, one in found.items() if one and len(one.x)}


def _beginning(chosen: Phenomenon, watched: ExperimentRuns) -> None:
    """Draw how the trainings begin, and leave the rest open."""
    figure = _curves(chosen, watched)
    if figure is None:
        return
    last = chosen.base.trained.steps
    hide_after(figure, BEGINNING * last, last)
    st.caption(
        _("The first {share} of the training. Guess the rest.", share=whole_percent(BEGINNING))
    )
    live_figure(figure, key="discover-beginning", name=trials.curves_name(chosen))


def curves(chosen: Phenomenon, trained: ExperimentRuns) -> None:
    """Draw the curves of all runs, with what is known of the data."""
    figure = _curves(chosen, trained)
    if figure is None:
        return
    levels = _levels(chosen, trained)
    is_share = METRICS[chosen.metrics[0]].is_share
    free = 1.0 if is_share else min(levels.values())  # no curve goes below the lowest loss
    room = 0.15 if is_share else 0.0
    for label, value in levels.items():
        is_below = value == free or is_crowded_above(figure, y=value, room=room)
        reference_line(figure, y=value, words=_(label), is_below=is_below)
    live_figure(figure, key="discover-curves", name=trials.curves_name(chosen))


def _curves(chosen: Phenomenon, trained: ExperimentRuns) -> go.Figure | None:
    n_more = len(chosen.metrics) - 1 + (len(chosen.arms) > 3)  # more names need more rows
    figure = trials.curves(chosen, trained, height=HEIGHT + _MORE * n_more)
    if figure is not None and not METRICS[chosen.metrics[0]].is_share:
        levels = _levels(chosen, trained)  # what is between them is what matters
        lowest, highest = min(levels.values()), max(levels.values())
        margin = 0.2 * (highest - lowest)
        figure.update_layout(yaxis={"range": [lowest - margin, highest + 2 * margin]})
    return figure


def _levels(chosen: Phenomenon, trained: ExperimentRuns) -> dict[str, float]:
    return chosen.known(run.experiment.seed for run in trained.runs)
