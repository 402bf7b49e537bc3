"""The order in which heads take their roles, in any run, and over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.app import show
from pages.components.live_figure import live_figure
from pages.findings import recipe
from pages.i18n import _, paragraph
from tfm_core.inspect.knockouts.measure import can_measure
from tfm_core.inspect.knockouts.parts import heads_of, part_of
from tfm_core.plots.chart import bands_of, cells, name_colours, texts_of
from tfm_core.plots.kinds import pale
from tfm_core.plots.palette import BLUE, GREEN, GREY, OCHRE, ORANGE, PURPLE, SKY, VERMILION
from tfm_core.probe.labels import AttentionKind, kinds_of, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.studies import specialise as roles
from tfm_core.studies.phenomenon import Phenomenon
from tfm_core.studies.specialise import ORDER
from tfm_core.studies.study import StudyRuns

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
"""Each role's; what is no role is grey. Roles of one colour also have their words in the row."""


def look(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the timeline of a run, the order over seeds, and what is lost without each head."""
    run = recipe.any_run(
        lambda one: bool(modules_by_kind(one)),
        key="specialise-run",
        first=recipe.shown_run(chosen, trained),
    )
    if run is not None:
        found = roles.timeline(run)
        _timeline(run, found)
        if recipe.is_done(run) and heads_of(run.experiment) and can_measure(run):
            _without(run, found)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _order(chosen, trained)


def _timeline(run: Run, found: pd.DataFrame) -> None:
    """Draw the roles of all heads, a row each.

    Snapshots are equally wide: the first are close together in steps, since most happens there.
    """
    kinds, heads = kinds_of(run.experiment), roles.heads(found)
    used = [role for role in roles.WORDS if (found["role"] == role).any()]
    names = [_name(kinds, *head) for head in found[roles.HEAD].drop_duplicates().to_numpy()]
    steps = [f"{step:,}" for step in found["step"].unique()]
    ticks = np.linspace(0, len(steps) - 1, min(len(steps), _MAX_TICKS)).round().astype(int)
    shown = sorted(set(ticks.tolist()))
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


def _without(run: Run, found: pd.DataFrame) -> None:
    """Show what each role's first head is worth: its output replaced by its mean."""
    first, kinds = roles.first_taken(found), kinds_of(run.experiment)
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


recipe.page(ORDER, look)
