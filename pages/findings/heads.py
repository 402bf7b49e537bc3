"""Heads: those that continue a repeat, those with nothing to do, and which role each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.app import show
from pages.components.live_figure import live_figure
from pages.components.moving_picture import curves
from pages.findings import recipe
from pages.i18n import _, paragraph
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.heads import behind_earlier
from tfm_core.inspect.attention.maps import MapView, map_view
from tfm_core.inspect.knockouts.measure import can_measure
from tfm_core.inspect.knockouts.parts import heads_of, part_of
from tfm_core.plots.chart import bands_of, cells, name_colours, texts_of
from tfm_core.plots.heads.attention import head_map, outline_cells
from tfm_core.plots.kinds import pale
from tfm_core.plots.palette import BLUE, GREEN, GREY, OCHRE, ORANGE, PURPLE, SKY, VERMILION
from tfm_core.probe.labels import AttentionKind, kinds_of, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies import induction, sinks
from tfm_core.studies import specialise as roles
from tfm_core.studies.induction import THRESHOLD, Formed, Head, formed
from tfm_core.studies.phenomenon import Phenomenon, over_runs
from tfm_core.studies.sinks import FACTOR, FAR, SHARE
from tfm_core.studies.study import StudyRuns

_MAP = 460  # pixels
_ROW, _AROUND = 26, 90  # pixels
_NAMED = 0.2  # of the width: shorter segments have no words in them
_MAX_TICKS = 7
_COLOURS = {
    "aligned": GREEN,
    "previous": BLUE,
    "induction": VERMILION,
    "first": PURPLE,
    "bos": PURPLE,
    "cls": PURPLE,
    "self": ORANGE,
    "repeated": OCHRE,
    "next": SKY,
    "above": SKY,
    "below": SKY,
    "near": SKY,
    "punctuation": OCHRE,
    "sink": PURPLE,
    "padding": VERMILION,
    **dict.fromkeys(roles.NONE, pale(GREY)),
    "spread": GREY,
}
"""The colour of each role, grey without one. Roles of one colour are named in the row, too."""


def draw_induction(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when the heads formed, their attention, and what is lost without each."""
    run = recipe.shown_run(chosen, trained)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    if run is None or len(run.snapshot_steps()) < 2:
        return
    heads = _formed(run)
    with right:
        _scores(run, heads)
    st.markdown(_induction_result(chosen, trained, len(run.probe().attended)))
    if heads is not None:
        _maps(run, heads[1])
    if recipe.is_done(run):
        left, right = st.columns(2, gap="medium")
        with left:
            _without_heads(run, heads)
        with right:
            _trap(chosen, trained)


def induction_card(trained: StudyRuns) -> dict[str, Any]:
    """Draw the map of the most important head, with its stripe."""
    run = trained.runs[0]
    heads = _formed(run)
    if heads is None:
        return {}
    return {"weights": _map(run, heads[1][0]).weights.tolist(), "colour": BLUE}


def _formed(run: Run) -> Formed | None:
    """Return a run's induction heads, the most important first."""
    result = formed(*induction.head_scores(run))
    if result is None or not recipe.is_done(run):
        return result
    step, heads, previous = result
    by_loss = sorted(heads, key=lambda head: induction.without(run, [head]).accuracy)
    return step, tuple(by_loss), previous


def _induction_result(chosen: Phenomenon, trained: StudyRuns, n: int) -> str:
    """Return when the first head formed, over all seeds, and the rule. n: measured examples."""
    by_seed = [_formed(run) for run in trained.ended(chosen.arms[0]).values()]
    rule = paragraph("discover/induction-rule", share=whole_percent(THRESHOLD), n=n)
    if not any(by_seed):
        return _("**Shown:** no induction head has formed so far.") + f" {rule}"
    result = _(
        "**Shown:** the first induction head formed at step {step} (seeds: {n}).",
        step=over_runs(heads and heads[0] for heads in by_seed),
        n=len(by_seed),
    )
    return f"{result} {rule}"


def _map(run: Run, head: Head) -> MapView:
    """Return the attention of a head on the first example at the last snapshot."""
    experiment, (kind, *_others) = run.experiment, modules_by_kind(run.experiment)
    snapshot = run.snapshot(run.snapshot_steps()[-1])
    example = example_of(experiment, run.probe(), snapshot, 0)
    return map_view(experiment, example, kind=kind, layer=head[0], head=head[1])


def _maps(run: Run, heads: Sequence[Head]) -> None:
    """Draw the maps of the induction heads; frames mark letters that continue a repeat."""
    st.markdown(_("**All induction heads**, the most important first. The stripe is the copy."))
    for column, head in zip(st.columns(max(2, len(heads)), gap="medium"), heads, strict=False):
        seen, name = _map(run, head), recipe.head_name(*head)
        figure = head_map(seen)
        outline_cells(figure, behind_earlier(seen.key), ORANGE)
        figure.update_layout(height=_MAP)
        right = _right(run, [head]) if recipe.is_done(run) else "–"
        with column:
            st.caption(_("{head}; {right} right without it", head=name, right=right))
            live_figure(figure, key=f"discover-map-{head}", name=_("Map of {head}", head=name))
    st.caption(_("Orange frames: the letter behind an earlier occurrence of the query."))


def _scores(run: Run, heads: Formed | None) -> None:
    """Draw the attention of each head over the training, and when the induction head formed."""
    steps, *scores = induction.head_scores(run)
    titles, x = (_("matching"), _("previous letter")), steps.astype(float)
    panels = {
        title: {
            recipe.head_name(layer, head): (x, values[:, layer, head])
            for layer, head in np.ndindex(values.shape[1:])
        }
        for title, values in zip(titles, scores, strict=True)
    }
    name = _("Attention of each head over the training")
    reference = None if heads is None else {"x": heads[0]}
    recipe.draw(panels, key="discover-scores", name=name, reference=reference)


def _without_heads(run: Run, heads: Formed | None) -> None:
    """Show the accuracy without each head, and without the whole last layer."""
    st.markdown(_("**Knock a head out:** its output is replaced by its mean."))
    copying = induction.copying(run)
    n_layers, n_heads = copying.shape
    role_of: dict[Head, str] = {}
    if heads is not None:
        _step, induction_heads, previous = heads
        role_of = dict.fromkeys(induction_heads, _("induction head"))
        role_of[previous] = _("previous letter")
    together = [head for head in np.ndindex(n_layers, n_heads) if head[0] == n_layers - 1]
    rows = [[_("none"), "", _right(run, []), ""]]
    for layer, head in np.ndindex(n_layers, n_heads):
        at = (layer, head)
        copied = f"{copying[at]:+.2f}" if layer == n_layers - 1 else ""
        rows.append([recipe.head_name(*at), role_of.get(at, ""), _right(run, [at]), copied])
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
        measured = [induction.elsewhere(run, task) for task in tasks]
        scores = " → ".join(f"{matching.max():.2f}" for _accuracy, matching in measured)
        right = " → ".join(show.percent(accuracy) for accuracy, _matching in measured)
        rows.append([_(arm.label), scores, right])
    columns = [_("Model"), _("Score → at random distances"), _("Right → at random distances")]
    show.facts(rows, columns)
    st.caption(paragraph("discover/induction-trap"))


def draw_sinks(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when the sink formed, with both softmaxes, where it goes, and any model's own."""
    run = recipe.shown_run(chosen, trained)
    left, right = st.columns(2, gap="medium")
    with left:
        _arms(chosen, trained)
    with right:
        recipe.curves(chosen, trained)
    if run is not None and len(run.snapshot_steps()) > 1:
        ended = trained.ended(chosen.arms[0]).values()
        result = sinks.in_words([sinks.formed(sinks.first_shares(each)) for each in ended])
        rule = paragraph(
            "discover/sinks-rule",
            share=whole_percent(SHARE),
            factor=FACTOR,
            far=FAR,
            n=len(run.probe().attended),
        )
        st.markdown(f"{_(result)} {rule}")
    if recipe.is_done(run):
        left, right = st.columns(2, gap="medium")
        with left:
            _moved(run)
        with right:
            _positions(run)
    _any_run(chosen)


def sinks_card(trained: StudyRuns) -> dict[str, Any]:
    """Draw the share on the first token with and without the extra logit, and the even share."""
    measured = [sinks.first_shares(run) for run in trained.runs]
    shown = [(steps.astype(float), shares[:, 0, 0]) for steps, shares, _even, _none in measured]
    return curves(shown, levels=[float(measured[0][2][0])])


def _arms(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Draw the share on the first token with and without the extra logit."""
    lines, even = {}, float("nan")
    for arm in chosen.arms:
        run = trained.shown.get(arm.name)
        if run is None or len(run.snapshot_steps()) < 2:
            continue
        steps, shares, evens, no_token = sinks.first_shares(run)
        even = float(evens[0])
        x = steps.astype(float)
        lines[_(arm.label)] = x, shares[:, 0, 0]
        if sinks.rests(no_token):
            lines[_("no token")] = x, no_token[:, 0, 0]
    if lines:
        name = _("Share on the first token over the training")
        reference = {"y": even, "words": _("even spread")}
        panels = {_("share on the first token"): lines}
        recipe.draw(panels, key="discover-sinks", name=name, reference=reference)


def _moved(run: Run) -> None:
    """Show whether the attention stays on the position or goes with the token."""
    st.markdown(_("**Move the first token:** where does the attention go?"))
    moved = sinks.moved(run)
    head = sinks.strongest(moved["as it is"][0])
    rows = [
        [
            _(label),
            *(
                "–" if shares is None else show.percent(float(shares[head]))
                for shares in moved[name]
            ),
        ]
        for name, label in sinks.MOVES.items()
    ]
    show.facts(rows, [_("Text"), _("On the first token"), _("On <bos>")])
    st.markdown(_(sinks.where_it_goes(moved)))
    st.caption(paragraph("discover/sinks-moved"))


def _positions(run: Run) -> None:
    """Draw what each position gets at the end, beside even attention."""
    steps, shares, _even, _no_token = sinks.first_shares(run)
    layer, head = sinks.strongest(shares[-1])
    weights, even = sinks.positions_at(run, int(steps[-1]), layer, head)
    x = np.arange(1, len(weights) + 1).astype(float)
    recipe.draw(
        {_("share of attention"): {recipe.head_name(layer, head): (x, weights)}},
        _("position of the key"),
        key="discover-positions",
        name=_("Attention on each position"),
        even=[(x, even)],
    )


def _any_run(chosen: Phenomenon) -> None:
    """Show the sink of any run: the visitor's, or one that comes with the app."""
    st.markdown(_("**Does another model have a sink?**"))
    run = recipe.any_run(
        lambda experiment: (
            sinks.kind_of_first(experiment) is not None and experiment.task != chosen.base.task
        ),
        of="sinks",
    )
    if run is None:
        return
    measured = sinks.first_shares(run)
    st.markdown(_(sinks.in_words([sinks.formed(measured)])))
    steps, shares, evens, _no_token = measured
    n_layers, n_heads = shares.shape[1:]
    x = steps.astype(float)
    panels = {
        _("layer {layer}", layer=layer + 1): {
            _("head {head}", head=head + 1): (x, shares[:, layer, head]) for head in range(n_heads)
        }
        for layer in range(n_layers)
    }
    recipe.draw(
        panels,
        key="discover-any-sinks",
        name=_("Share on the first token by layer"),
        even=[(x, np.full_like(x, even)) for even in evens],
        layout={"height": 100 + 130 * n_layers},
    )
    shown = " / ".join(dict.fromkeys(map(show.percent, evens)))
    st.caption(paragraph("discover/sinks-presets", even=shown, n=len(run.probe().attended)))


def draw_roles(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the timeline of a run, the order over seeds, and what is lost without each head."""
    run = recipe.any_run(
        lambda experiment: bool(modules_by_kind(experiment)),
        of="roles",
        first=recipe.shown_run(chosen, trained),
    )
    if run is not None:
        timeline = roles.timeline(run)
        _timeline(run, timeline)
        if recipe.is_done(run) and heads_of(run.experiment) and can_measure(run):
            _without_roles(run, timeline)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _order(chosen, trained)


def roles_card(trained: StudyRuns) -> dict[str, Any]:
    """Draw the role of each head over the training."""
    rows_by_head = roles.heads(roles.timeline(trained.runs[0]))
    return {"rows": [[_COLOURS[role] for role in rows["role"]] for rows in rows_by_head]}


def _timeline(run: Run, timeline: pd.DataFrame) -> None:
    """Draw the roles of all heads, a row each.

    Snapshots are equally wide: the first are close together in steps, since most happens there.
    """
    kinds, heads = kinds_of(run.experiment), roles.heads(timeline)
    used = [role for role in roles.WORDS if (timeline["role"] == role).any()]
    names = [_name(kinds, *head) for head in timeline[roles.HEAD].drop_duplicates().to_numpy()]
    steps = [f"{step:,}" for step in timeline["step"].unique()]
    shown = np.unique(np.linspace(0, len(steps) - 1, _MAX_TICKS).round().astype(int)).tolist()
    figure = cells(
        [list(map(used.index, rows["role"])) for rows in heads],
        bands_of([_COLOURS[role] for role in used]),
        (-0.5, len(used) - 0.5),
        says=texts_of(
            "{name}<br>{step}<br>{role}",
            rows={"name": names},
            columns={"step": [_("step {step}", step=step) for step in steps]},
            role=[[escape(_(label)) for label in rows["label"]] for rows in heads],
        ),
        trace={"xgap": 0, "ygap": 3},
        height=_AROUND + _ROW * len(names),
        top=30,
        x={
            "title": _("step"),
            "tickvals": shown,
            "ticktext": [steps[n] for n in shown],
            "range": [-0.5, len(steps) - 0.5],
        },
        y={"names": names},
    )
    name_colours(figure, {_(roles.WORDS[role]): _COLOURS[role] for role in used})
    for row, rows in enumerate(heads):
        _name_segments(figure, row, rows["role"].tolist())
    live_figure(figure, key="discover-roles", name=_("The role of each head over the training"))
    st.caption(paragraph("discover/specialise-rule"))


def _name_segments(figure: go.Figure, row: int, taken: Sequence[str]) -> None:
    """Write the role into each segment that is wide enough."""
    at = 0
    for role, group in groupby(taken):
        length = len(list(group))
        if role not in roles.NONE and length >= _NAMED * len(taken):
            figure.add_annotation(
                x=at + (length - 1) / 2,
                y=row,
                text=_(roles.WORDS[role]),
                showarrow=False,
                font={"size": 11, "color": "#ffffff"},
            )
        at += length


def _name(
    kinds: Mapping[str, AttentionKind], kind: str, _module: str, layer: int, head: int
) -> str:
    return f"{_(kinds[kind].short)} {layer + 1}.{head + 1}"


def _without_roles(run: Run, timeline: pd.DataFrame) -> None:
    """Show the accuracy when the output of each role's first head is replaced by its mean."""
    first, kinds = roles.first_taken(timeline), kinds_of(run.experiment)
    if first.empty:
        st.markdown(_("**Shown:** no head has taken a role for good."))
        return
    st.markdown(_("**Knock a head out:** its output is replaced by its mean."))
    rows = [["", _("none"), "", show.percent(roles.without(run))]]
    for *head, step, _role, label in first.itertuples(index=False):
        _kind, module, _layer, number = head
        right = show.percent(roles.without(run, part_of(module, number)))
        rows.append([f"{step:,.0f}", _name(kinds, *head), _(label), right])
    show.facts(rows, [_("From step"), _("Without"), _("Role"), _("Right")])


def _order(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when each role is first taken, over all seeds of each arm."""
    rows = []
    for arm in chosen.arms:
        runs = trained.ended(arm).values()
        for role, mean, sd, n in roles.order(map(roles.timeline, runs)).itertuples(index=False):
            step = f"{mean:,.0f} ± {sd:.0f}" if n > 1 else f"{mean:,.0f}"
            rows.append([_(arm.label), _(roles.WORDS[role]), step, f"{n} / {len(runs)}"])
    if not rows:
        return
    st.markdown(_("**The first head of each role**"))
    show.facts(rows, [_("Model"), _("Role"), _("Step"), _("Seeds")])
