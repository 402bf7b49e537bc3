"""What pages of findings share: runs and their controls, a guess, curves, any run, the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeGuard

import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.lessons import bar
from pages.app.model import question
from pages.app.runs import comparison, run_words, runs_access, studies
from pages.components.live_figure import live_figure
from pages.i18n import _
from tfm_core.choices.config import Experiment
from tfm_core.inspect.compare.curves import METRICS, track
from tfm_core.plots.kinds import is_crowded_above, reference_line
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, hide_after
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies.phenomenon import Phenomenon
from tfm_core.studies.study import Arm, StudyRuns, runs_of

HEIGHT, _MORE = 300, 80  # pixels of a figure, and of each further panel or many names
_MAX, _RECORDED = 20, "recorded-korean"  # runs to choose from; the first of those with the app
BEGINNING = 0.1
"""Which share of a training is seen before the guess."""
Draw = Callable[[Phenomenon, StudyRuns], None]


def page(chosen: Phenomenon, look: Draw) -> None:
    """Show a finding. look: draws what its runs show, once there is a run and a guess."""
    show.header(chosen.name)
    trained = studies.at_hand(chosen)
    watched = trained if trained.runs else runs_of(chosen, runs_access.store().lessons())
    comparison.follow(trained.runs, partial(_draw, chosen, look, trained, watched))


def _draw(
    chosen: Phenomenon,
    look: Draw,
    trained: StudyRuns,
    watched: StudyRuns,
    _is_live: bool,
) -> None:
    """Draw the page. watched: the visitor's runs, or the recorded ones where there are none."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        studies.buttons(chosen, trained, stays=True)
        first = shown_run(chosen, watched)
        if first is not None:
            show.link("attention", _("Look inside"), {"run": first.id})
        bar.start("discover", _("Tour: eight findings"))
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


def _lines(chosen: Phenomenon, watched: StudyRuns, trained: StudyRuns) -> None:
    with st.container(horizontal=True, gap="medium"):
        studies.lines(chosen, watched, stopped=trained.stopped)


def shown_run(chosen: Phenomenon, trained: StudyRuns) -> Run | None:
    """Return the run that shows the finding; None where there is none yet."""
    return trained.shown.get(chosen.arms[0].name)


def is_done(run: Run | None) -> TypeGuard[Run]:
    """Whether there is a run whose training has ended and whose last weights are kept."""
    return run is not None and not run.status.is_active and run.has_checkpoint


def head_name(layer: int, head: int) -> str:
    """Return what a head is called; both are counted from 0."""
    return _("layer {layer}, head {head}", layer=layer + 1, head=head + 1)


def ended(trained: StudyRuns, arm: Arm, metric: str) -> dict[int, tuple[Floats, Floats]]:
    """Return the steps and values (S,) of a metric, by seed, of ended runs of an arm."""
    found = {
        seed: track(runs_access.curves(run), run.experiment, metric, "step")
        for seed, run in trained.ended(arm).items()
    }
    return {seed: (one.x, one.values) for seed, one in found.items() if one and len(one.x)}


def _beginning(chosen: Phenomenon, watched: StudyRuns) -> None:
    """Draw how the trainings begin, and leave the rest open."""
    figure = _curves(chosen, watched)
    if figure is None:
        return
    last = chosen.base.trained.steps
    hide_after(figure, BEGINNING * last, last)
    st.caption(
        _("The first {share} of the training. Guess the rest.", share=whole_percent(BEGINNING))
    )
    live_figure(figure, key="discover-beginning", name=studies.curves_name(chosen))


def curves(chosen: Phenomenon, trained: StudyRuns) -> None:
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
    live_figure(figure, key="discover-curves", name=studies.curves_name(chosen))


def _curves(chosen: Phenomenon, trained: StudyRuns) -> go.Figure | None:
    n_more = len(chosen.metrics) - 1 + (len(chosen.arms) > 3)  # more names need more rows
    figure = studies.curves(chosen, trained, height=HEIGHT + _MORE * n_more)
    if figure is not None and not METRICS[chosen.metrics[0]].is_share:
        levels = _levels(chosen, trained)  # what is between them is what matters
        lowest, highest = min(levels.values()), max(levels.values())
        margin = 0.2 * (highest - lowest)
        figure.update_layout(yaxis={"range": [lowest - margin, highest + 2 * margin]})
    return figure


def _levels(chosen: Phenomenon, trained: StudyRuns) -> dict[str, float]:
    return chosen.known(run.experiment.seed for run in trained.runs)


def draw_lines(
    panels: Sequence[CurvePanel],
    x: str,
    *,
    key: str,
    name: str,
    reference: dict[str, Any] | None = None,
    height: int = HEIGHT,
    is_log_y: bool = False,
) -> None:
    """Draw panels of lines over one another. reference: what ``reference_line`` takes, if any."""
    figure = plots.comparison(panels, x, height=height, is_log_y=is_log_y)
    if reference is not None:
        reference_line(figure, **reference)
    live_figure(figure, key=key, name=name)


def any_run(
    fits: Callable[[Experiment], bool], *, key: str, first: Run | None = None
) -> Run | None:
    """Draw the choice of a run that fits and has snapshots; None where there is none.

    first: the one that is shown until another is chosen.
    """
    current = state.current_run_id()
    ready = [
        run
        for run in (visitors.at_hand() if first is None else [first, *visitors.at_hand()])
        if run.problem is None and fits(run.experiment) and len(run.snapshot_steps()) > 1
    ]
    ready.sort(key=lambda run: (run is not first, run.meta.recorded, run.id != _RECORDED))
    ready = [run for n, run in enumerate(ready) if n < _MAX or run.id == current]
    if not ready:
        st.info(_("No run fits yet."), icon=":material/hourglass_empty:")
        return None
    by_id = {run.id: run for run in ready}
    if current in by_id or st.session_state.get(key) not in by_id:
        st.session_state[key] = current if current in by_id else ready[0].id
    picked = st.selectbox(
        _("Model"),
        list(by_id),
        format_func=lambda run_id: run_words.name(by_id[run_id]),
        key=key,
        help=_("Fitting runs, newest first."),
        on_change=lambda: state.set_current_run(st.session_state[key]),
    )
    if current is None:
        state.show_unasked(picked)
    return by_id[picked]
