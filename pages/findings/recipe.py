"""What findings share: the run that shows one, its curves with what is known, and any run.

The base of a finding has an arm that shows it and arms that do not, each with a run a seed. What is
drawn of a single run is drawn of ``shown_run``; curves are drawn of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.address.parameters import NEWEST
from pages.app.runs import comparison, run_words, runs_access
from pages.components.live_figure import live_figure
from pages.i18n import N_, _
from tfm_core.choices.config import Experiment
from tfm_core.inspect.curves import METRICS, track
from tfm_core.plots.kinds import is_crowded_above, reference_line
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.studies.phenomenon import Phenomenon
from tfm_core.studies.study import Arm, StudyRuns

HEIGHT, _MORE = 300, 80  # pixels of a figure, and of each further panel or many names
_EVEN_LOOK = 7  # of an even spread, in every figure
_MAX, _RECORDED = 20, "recorded-korean"  # runs to choose from; the first of those with the app


Line = tuple[Floats, Floats] | tuple[Floats, Floats, Floats, Floats]
"""x and y, perhaps with low and high."""


def shown_run(chosen: Phenomenon, trained: StudyRuns) -> Run | None:
    """Return the run that shows the finding; None where there is none yet."""
    return trained.shown.get(chosen.arms[0].name)


def is_done(run: Run | None) -> TypeGuard[Run]:
    """Whether there is a run whose training has ended and whose last weights are kept."""
    return run is not None and not run.status.is_active and run.has_checkpoint


def head_name(layer: int, head: int) -> str:
    """Return the name of a head; both numbers count from 0."""
    return _("layer {layer}, head {head}", layer=layer + 1, head=head + 1)


def ended(trained: StudyRuns, arm: Arm, metric: str) -> dict[int, tuple[Floats, Floats]]:
    """Return the steps and values (S,) of a metric, by seed, of ended runs of an arm."""
    curves = {
        seed: track(runs_access.curves(run), run.experiment, metric, "step")
        for seed, run in trained.ended(arm).items()
    }
    return {
        seed: (curve.x, curve.values) for seed, curve in curves.items() if curve and len(curve.x)
    }


def curves(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Draw the curves of all runs, with the known levels of the data."""
    n_more = len(chosen.metrics) - 1 + (len(chosen.arms) > 3)  # more names need more rows
    figure = comparison.study_curves(chosen, trained, height=HEIGHT + _MORE * n_more)
    if figure is None:
        return
    known = levels(chosen, trained)
    lowest, highest = min(known.values()), max(known.values())
    is_share = METRICS[chosen.metrics[0]].is_share
    if not is_share:  # what is between them is what matters
        margin = 0.2 * (highest - lowest)
        figure.update_layout(yaxis={"range": [lowest - margin, highest + 2 * margin]})
    free = 1.0 if is_share else lowest  # no curve goes below the lowest loss
    room = 0.15 if is_share else 0.0
    for label, value in known.items():
        is_below = value == free or is_crowded_above(figure, y=value, room=room)
        reference_line(figure, y=value, words=_(label), is_below=is_below)
    live_figure(figure, key="discover-curves", name=comparison.study_curves_name(chosen))


def levels(chosen: Phenomenon, trained: StudyRuns) -> dict[str, float]:
    """Return the known levels, which are computed from the data without any training."""
    return chosen.known(run.experiment.seed for run in trained.runs)


def draw(
    panels: Mapping[str, Mapping[str, Line]],
    x: str = "",
    *,
    key: str,
    name: str,
    even: Sequence[Line] = (),
    reference: dict[str, Any] | None = None,
    is_share: bool = True,
    layout: Mapping[str, Any] | None = None,
) -> None:
    """Draw panels over one another: lines by their names, with the looks of their order.

    x: title of the axis, by default of steps. name: of the figure, for screen readers. even: the
    even spread of each panel, if any. reference: arguments of ``reference_line``. is_share: y is a
    share of 1; else it is logarithmic. layout: changes to that of the figure.
    """
    made = []
    for n, (title, lines) in enumerate(panels.items()):
        drawn = [RunLine(label, slot, *line) for slot, (label, line) in enumerate(lines.items())]
        if even:
            drawn.append(RunLine(_("even spread"), _EVEN_LOOK, *even[n]))
        made.append(CurvePanel(title, drawn, is_share=is_share))
    figure = plots.comparison(made, x or _("step"), height=HEIGHT, is_log_y=not is_share)
    if reference is not None:
        reference_line(figure, **reference)
    figure.update_layout(layout)
    live_figure(figure, key=key, name=name)


def step(label: str, steps: Sequence[int], of: str, **more: Any) -> int:
    """Choose one of a run's saved steps, at first the last, which a training moves on.

    of: the figure that shows it. more: settings of the slider.
    """
    field = view.saved_step(label, tuple(steps), of=of, **more)
    chosen = int(view.one(field, "step", "findings"))
    return steps[-1] if chosen == NEWEST else chosen


def any_run(fits: Callable[[Experiment], bool], *, of: str, first: Run | None = None) -> Run | None:
    """Choose a run that fits and has snapshots; None where there is none.

    of: the figure that shows it. first: the run shown until another is chosen.
    """
    current = state.current_run_id()
    ready = [
        run
        for run in (first, *visitors.available_runs())
        if run and run.problem is None and fits(run.experiment) and len(run.snapshot_steps()) > 1
    ]
    ready.sort(key=lambda run: (run is not first, run.meta.recorded, run.id != _RECORDED))
    by_id = {run.id: run for n, run in enumerate(ready) if n < _MAX or run.id == current}
    if not by_id:
        st.info(_("No run fits yet."), icon=":material/hourglass_empty:")
        return None
    names = {run_id: run_words.name(run) for run_id, run in by_id.items()}
    shown = current if current in by_id else ready[0].id
    field = view.choice(
        N_("Model"),
        names,
        shown,
        query="model",
        is_list=True,
        of=of,
        help=N_("Fitting runs, newest first."),
        holds_for=f"run {current}",
    )
    return by_id[view.one(field, "model", "findings")]
