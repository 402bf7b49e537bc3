"""Grokking: the trained sums first, and all others long after."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.app import show, state
from pages.components.live_figure import live_figure
from pages.findings import recipe
from pages.i18n import N_, _, paragraph
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.plots.chart import bands_of, cells, name_colours
from tfm_core.plots.kinds import pale
from tfm_core.plots.palette import GREEN, GREY, SCALES
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies import grokking
from tfm_core.studies.grokking import GROKKING, KNOWN
from tfm_core.studies.phenomenon import Phenomenon, first, over_runs
from tfm_core.studies.study import StudyRuns

_TABLE = 440  # pixels
_STATES = {  # of a sum; the trained ones are darker
    N_("new, wrong"): pale(GREY, 0.3),
    N_("new, right"): pale(GREEN, 0.5),
    N_("trained, wrong"): GREY,
    N_("trained, right"): GREEN,
}


def look(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the curves, the table of all sums, and the frequencies that the model adds with."""
    run = recipe.shown_run(chosen, trained)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
        _known(chosen, trained)
    if run is None:
        return
    with right:
        if run.has_checkpoint:
            _table(run)
    if len(run.snapshot_steps()) < 2:
        return
    st.markdown(_("**Frequencies of the embedding** over the training"))
    steps, shares = grokking.power_over_time(run)
    figure = cells(
        shares.T,
        SCALES[state.theme()],
        (0, float(shares.max(initial=0))),
        height=recipe.HEIGHT,
        says=_(
            "step {step}, frequency {k}: {share}",
            step="%{x}",
            k="%{y}",
            share="%{z:.1%}<extra></extra>",
        ),
        gap=0,
        x={"title": _("step"), "range": [int(steps[0]), int(steps[-1])]},
        y={"title": _("frequency"), "autorange": True},
        trace={"x": steps, "y": np.arange(1, shares.shape[1] + 1)},
    )
    live_figure(figure, key="discover-frequencies", name=_("Power of each frequency"))
    if recipe.is_done(run):
        _without(run)


def _known(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when each training knows the trained sums, and the new ones."""
    rows = []
    for arm in chosen.arms:
        found = [
            recipe.ended(trained, arm, metric) for metric in ("accuracy", "validation-accuracy")
        ]
        if all(found):
            steps = [[first(x, right >= KNOWN) for x, right in one.values()] for one in found]
            rows.append([_(arm.label), *map(over_runs, steps)])
    if rows:
        st.markdown(_("**Shown:** the step from which sums are known."))
        show.facts(rows, [_("Training"), _("Trained sums"), _("New sums")])
        st.caption(paragraph("discover/grokking-rule", share=whole_percent(KNOWN)))


def _table(run: Run) -> None:
    step, is_right, is_trained = grokking.sum_table(run)
    st.markdown(
        _(
            "**Step {step}:** {trained} of the trained sums are right, {new} of the others.",
            step=f"{step:,}",
            trained=show.percent(float(is_right[is_trained].mean())),
            new=show.percent(float(is_right[~is_trained].mean())),
        )
    )
    states, colours = [_(name) for name in _STATES], list(_STATES.values())
    state_of = 2 * is_trained.astype(np.int8) + is_right
    figure = cells(
        state_of,
        bands_of(colours),
        (-0.5, len(states) - 0.5),
        height=_TABLE,
        top=30,
        says=_("{a} + {b}: {state}", a="%{y}", b="%{x}", state="%{customdata}<extra></extra>"),
        gap=0,
        x={"title": _("b"), "constrain": "domain"},
        y={"title": _("a"), "scaleanchor": "x"},
        trace={"customdata": np.array(states, object)[state_of]},
    )
    name_colours(figure, dict(zip(states, colours, strict=True)))
    live_figure(figure, key="discover-sums", name=_("All sums a + b"))


def _without(run: Run) -> None:
    keys = grokking.keys_of(run)
    chosen: list[int] = []
    if keys:
        chosen = st.pills(
            _("Key frequencies to project"),
            keys,
            default=keys,
            selection_mode="multi",
            key=f"discover-keys-{run.id}-{checkpoint_mark(run)}",
        )
    found = grokking.projected(run, tuple(sorted(chosen)))
    left, right = st.columns(2, gap="medium")
    with left:
        rows = {
            _("as it is"): "whole",
            _("these frequencies only"): "only",
            _("without these frequencies"): "without",
        }
        show.facts(
            [[words, show.percent(found[name])] for words, name in rows.items()],
            [_("Embedding"), _("New sums right")],
        )
    with right:
        losses = {
            _("new sums: as they are, restricted"): ("whole_loss", "restricted"),
            _("trained sums: as they are, excluded"): ("trained_loss", "excluded"),
        }
        show.facts(
            [[words, *(f"{found[name]:.3f}" for name in names)] for words, names in losses.items()],
            [_("Logits"), _("Loss"), _("Changed")],
        )
    st.caption(paragraph("discover/grokking-restricted"))


recipe.page(GROKKING, look)
