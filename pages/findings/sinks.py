"""Attention sinks: a head with nothing to do reads the first token."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.app import show
from pages.findings import recipe
from pages.i18n import _, paragraph
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies import sinks
from tfm_core.studies.phenomenon import Phenomenon
from tfm_core.studies.sinks import FACTOR, FAR, SHARE, SINKS
from tfm_core.studies.study import StudyRuns


def look(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when the sink formed, with both softmaxes, where it goes, and any model's own."""
    run = recipe.shown_run(chosen, trained)
    if run is not None and len(run.snapshot_steps()) > 1:
        st.markdown(_verdict(chosen, trained, len(run.probe().attended)))
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _arms(chosen, trained)
    if recipe.is_done(run):
        left, right = st.columns(2, gap="medium")
        with left:
            _moved(run)
        with right:
            _positions(run)
    _any_run(chosen)


def _verdict(chosen: Phenomenon, trained: StudyRuns, n: int) -> str:
    """Return when the sink formed, and the rule. n: the examples on which it is measured."""
    runs = trained.ended(chosen.arms[0]).values()
    found = sinks.in_words([sinks.formed(sinks.first_shares(run)) for run in runs])
    rule = paragraph("discover/sinks-rule", share=whole_percent(SHARE), factor=FACTOR, far=FAR, n=n)
    return f"{_(found)} {rule}"


def _arms(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Draw the share on the first token with and without the extra logit."""
    lines, even = [], float("nan")
    for slot, arm in enumerate(chosen.arms):
        run = trained.shown.get(arm.name)
        if run is None or len(run.snapshot_steps()) < 2:
            continue
        steps, shares, evens, no_token = sinks.first_shares(run)
        even = float(evens[0])
        x = steps.astype(float)
        lines.append(RunLine(_(arm.label), slot, x, shares[:, 0, 0]))
        if sinks.rests(no_token):
            lines.append(RunLine(_("no token"), slot + 2, x, no_token[:, 0, 0]))
    if not lines:
        return
    recipe.draw_lines(
        [CurvePanel(_("share on the first token"), lines, is_share=True)],
        _("step"),
        key="discover-sinks",
        name=_("Share on the first token over the training"),
        reference={"y": even, "words": _("even spread")},
    )


def _moved(run: Run) -> None:
    """Show whether the attention stays on the position or goes with the token."""
    st.markdown(_("**Move the first token:** where does the attention go?"))
    found = sinks.moved(run)
    at = sinks.strongest(found["as it is"][0])
    rows = [
        [
            _(words),
            *("–" if shares is None else show.percent(float(shares[at])) for shares in found[name]),
        ]
        for name, words in sinks.MOVES.items()
    ]
    show.facts(rows, [_("Text"), _("On the first token"), _("On <bos>")])
    st.markdown(_(sinks.where_it_goes(found)))
    st.caption(paragraph("discover/sinks-moved"))


def _positions(run: Run) -> None:
    """Draw what each position gets at the end, beside even attention."""
    steps, shares, _even, _no_token = sinks.first_shares(run)
    layer, head = sinks.strongest(shares[-1])
    weights, even = sinks.positions_at(run, int(steps[-1]), layer, head)
    x = np.arange(1, len(weights) + 1).astype(float)
    lines = [
        RunLine(recipe.head_name(layer, head), 0, x, weights),
        RunLine(_("even spread"), 7, x, even),
    ]
    recipe.draw_lines(
        [CurvePanel(_("share of attention"), lines, is_share=True)],
        _("position of the key"),
        key="discover-positions",
        name=_("Attention on each position"),
    )


def _any_run(chosen: Phenomenon) -> None:
    """Show the same of any run: the visitor's GPT or translator, or one that comes with the app."""
    st.markdown(_("**Any model:** does it have a sink?"))
    run = recipe.any_run(
        lambda one: sinks.kind_of_first(one) is not None and one.task != chosen.base.task,
        key="sinks-run",
    )
    if run is None:
        return
    found = sinks.first_shares(run)
    st.markdown(_(sinks.in_words([sinks.formed(found)])))
    steps, shares, evens, _no_token = found
    n_layers, n_heads = shares.shape[1:]
    x = steps.astype(float)
    panels = [
        CurvePanel(
            _("layer {layer}", layer=layer + 1),
            [
                RunLine(_("head {head}", head=head + 1), head, x, shares[:, layer, head])
                for head in range(n_heads)
            ]
            + [RunLine(_("even spread"), 7, x, np.full_like(x, evens[layer]))],
            is_share=True,
        )
        for layer in range(n_layers)
    ]
    recipe.draw_lines(
        panels,
        _("step"),
        key="discover-any-sinks",
        name=_("Share on the first token by layer"),
        height=100 + 130 * n_layers,
    )
    even = " / ".join(dict.fromkeys(map(show.percent, evens)))
    n = len(run.probe().attended)
    st.caption(paragraph("discover/sinks-presets", even=even, n=n))


recipe.page(SINKS, look)
