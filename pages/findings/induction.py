"""Induction heads: when they form, which they are, and what is lost without them."""

from __future__ import annotations

import statistics

import numpy as np
import streamlit as st

from pages.app import show
from pages.findings import recipe
from pages.i18n import _, paragraph
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies import induction
from tfm_core.studies.induction import INDUCTION, THRESHOLD, Formed, Head, formed
from tfm_core.studies.phenomenon import Phenomenon
from tfm_core.studies.study import StudyRuns


def look(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when the head formed, its attention over training, and what is lost without it."""
    run = recipe.shown_run(chosen, trained)
    found = None
    if run is not None and len(run.snapshot_steps()) > 1:
        st.markdown(_verdict(chosen, trained, len(run.probe().attended)))
        found = _formed(run)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    if run is None or len(run.snapshot_steps()) < 2:
        return
    with right:
        _scores(run, found)
    if not recipe.is_done(run):
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _without(run, found)
    with right:
        _trap(chosen, trained)


def _formed(run: Run) -> Formed | None:
    """Return a run's induction heads, first the one without which most is lost."""
    found = formed(*induction.head_scores(run))
    if found is None or not recipe.is_done(run):
        return found
    step, heads, previous = found
    by_loss = sorted(heads, key=lambda head: induction.without(run, [head]).accuracy)
    return step, tuple(by_loss), previous


def _verdict(chosen: Phenomenon, trained: StudyRuns, n: int) -> str:
    """Return when the head formed, over all seeds, and the rule by which it is called one.

    n: the examples on which it is measured.
    """
    by_seed = {seed: _formed(run) for seed, run in trained.ended(chosen.arms[0]).items()}
    there = [one for one in by_seed.values() if one is not None]
    rule = paragraph("discover/induction-rule", share=whole_percent(THRESHOLD), n=n)
    if not there:
        return _("**Shown:** no induction head has formed so far.") + f" {rule}"
    step, named, _previous = by_seed.get(trained.seed) or there[0]
    heads = "; ".join(recipe.head_name(*head) for head in named)
    steps = [one[0] for one in there]
    if len(by_seed) == 1:
        words = _(
            "**Shown:** the first induction head formed at step {step}. Induction heads: {heads}.",
            step=f"{step:,}",
            heads=heads,
        )
    else:
        words = _(
            "**Shown:** the first induction head formed at step {mean} ± {sd}, in {n} of {all} "
            "seeds; in seed {seed} the induction heads are: {heads}.",
            mean=f"{statistics.mean(steps):,.0f}",
            sd=f"{statistics.stdev(steps) if len(steps) > 1 else 0:.0f}",
            n=len(there),
            all=len(by_seed),
            seed=trained.seed,
            heads=heads,
        )
    return f"{words} {rule}"


def _scores(run: Run, found: Formed | None) -> None:
    """Draw the attention of each head over the training, and when the induction head formed."""
    steps, matching, previous = induction.head_scores(run)
    heads = list(np.ndindex(matching.shape[1:]))

    def panel(title: str, values: Floats) -> CurvePanel:
        lines = [
            RunLine(
                recipe.head_name(layer, head), slot, steps.astype(float), values[:, layer, head]
            )
            for slot, (layer, head) in enumerate(heads)
        ]
        return CurvePanel(title, lines, is_share=True)

    recipe.draw_lines(
        [panel(_("matching"), matching), panel(_("previous letter"), previous)],
        _("step"),
        key="discover-scores",
        name=_("Attention of each head over the training"),
        reference=None if found is None else {"x": found[0]},
    )


def _without(run: Run, found: Formed | None) -> None:
    """Show what is left of the accuracy without the induction head, and without others."""
    st.markdown(_("**Knock a head out:** its output is replaced by its mean."))
    copying = induction.copying(run)
    n_layers, n_heads = copying.shape
    roles: dict[Head, str] = {}
    if found is not None:
        _step, formed_heads, previous = found
        roles = dict.fromkeys(formed_heads, _("induction head")) | {previous: _("previous letter")}
    together = [head for head in np.ndindex(n_layers, n_heads) if head[0] == n_layers - 1]
    rows = [[_("none"), "", _right(run, []), ""]]
    for layer, head in np.ndindex(n_layers, n_heads):
        one = (layer, head)
        copied = f"{copying[one]:+.2f}" if layer == n_layers - 1 else ""
        rows.append([recipe.head_name(*one), roles.get(one, ""), _right(run, [one]), copied])
    last = _("all of layer {layer}", layer=n_layers)
    rows.append([last, "", _right(run, together), ""])
    show.facts(rows, [_("Without"), _("Role"), _("Repeat right"), _("Copying")])
    st.caption(paragraph("discover/induction-copying"))


def _right(run: Run, heads: list[Head]) -> str:
    return show.percent(induction.without(run, heads).accuracy)


def _trap(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show that a high score alone proves nothing: at other distances it is gone."""
    st.markdown(_("**A trap:** the same score without the mechanism."))
    rows = []
    for arm in chosen.arms:
        run = trained.shown.get(arm.name)
        if not recipe.is_done(run):
            continue
        tasks = run.experiment.task.name, chosen.base.task.name
        found = [induction.elsewhere(run, task) for task in tasks]
        scores = " → ".join(f"{matching.max():.2f}" for _accuracy, matching in found)
        right = " → ".join(show.percent(accuracy) for accuracy, _matching in found)
        rows.append([_(arm.label), scores, right])
    show.facts(
        rows,
        [
            _("Model"),
            _("Score → at random distances"),
            _("Right → at random distances"),
        ],
    )
    st.caption(paragraph("discover/induction-trap"))


recipe.page(INDUCTION, look)
