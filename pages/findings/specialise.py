"""The order in which heads take their roles, in any run, and over seeds."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from pages.app import show
from pages.components.live_figure import live_figure
from pages.findings import recipe
from pages.i18n import _, paragraph
from tfm_core.inspect.knockouts.measure import can_measure
from tfm_core.inspect.knockouts.parts import heads_of, part_of
from tfm_core.plots import findings as plots
from tfm_core.probe.labels import AttentionKind, kinds_of, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.studies import specialise as roles
from tfm_core.studies.phenomenon import Phenomenon
from tfm_core.studies.specialise import ORDER
from tfm_core.studies.study import StudyRuns

_WORDS = tuple(roles.WORDS.values())


def look(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the timeline of a run, the order over seeds, and what is lost without each head."""
    run = recipe.any_run(
        lambda one: bool(modules_by_kind(one)),
        key="specialise-run",
        first=recipe.shown_run(chosen, trained),
    )
    if run is not None:
        found = roles.timeline(run)
        kinds, heads = kinds_of(run.experiment), found[roles.HEAD].drop_duplicates()
        figure = plots.timeline(
            found,
            [_name(kinds, *head) for head in heads.to_numpy()],
            {words: _(words) for words in (*_WORDS, *found["label"].unique())},
        )
        name = _("The role of each head over the training")
        live_figure(figure, key="discover-roles", name=name)
        st.caption(paragraph("discover/specialise-rule"))
        if recipe.is_done(run) and heads_of(run.experiment) and can_measure(run):
            _without(run, found)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _order(chosen, trained)


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
