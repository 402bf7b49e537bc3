"""The order in which heads take their roles, in any run, and over seeds."""

from __future__ import annotations

import streamlit as st

from pages.components.live_figure import live_figure
from pages.discover import own, recipe
from pages.i18n import _, paragraph
from pages.ui import show
from tfm_core.inspect.discover import roles
from tfm_core.inspect.discover.phenomenon import ORDER, Phenomenon
from tfm_core.inspect.discover.roles import HeadLine, Timeline
from tfm_core.inspect.experiments.result import ExperimentRuns
from tfm_core.plots.heads import roles as plots
from tfm_core.probe.labels import modules_by_kind
from tfm_core.runs.run import Run

_WORDS = tuple(roles.WORDS.values())


def look(chosen: Phenomenon, trained: ExperimentRuns) -> None:
    """Show the timeline of a run, the order over seeds, and what is lost without each head."""
    run = own.chosen_run(
        lambda one: bool(modules_by_kind(one)),
        key="specialise-run",
        first=recipe.shown_run(chosen, trained),
    )
    if run is not None:
        found = roles.timeline(run)
        _timeline(run, found)
        if recipe.is_done(run) and roles.can_knock(run):
            _without(run, found)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _order(chosen, trained)


def _timeline(run: Run, found: Timeline) -> None:
    kinds = roles.attention_words(run)
    figure = plots.timeline(
        found,
        [_name(head, kinds) for head in found.heads],
        {
            words: _(words)
            for words in (*_WORDS, *(label for h in found.heads for label in h.labels))
        },
    )
    live_figure(figure, key="discover-roles", name=_("The role of each head over the training"))
    st.caption(paragraph("discover/specialise-rule"))


def _name(head: HeadLine, kinds: dict[str, str]) -> str:
    return f"{_(kinds[head.kind])} {head.layer + 1}.{head.head + 1}"


def _without(run: Run, found: Timeline) -> None:
    """Show what each role's first head is worth: its output replaced by its mean."""
    first, kinds = found.first(), roles.attention_words(run)
    if not first:
        st.markdown(_("**Shown:** no head has taken a role for good."))
        return
    st.markdown(_("**Knock a head out:** its output is replaced by its mean."))
    whole = roles.without(run, None)
    rows = [["", _("none"), "", show.percent(whole)]]
    for step, head in first.values():
        right = show.percent(roles.without(run, head))
        rows.append([f"{step:,}", _name(head, kinds), _(head.labels[-1]), right])
    show.facts(rows, [_("From step"), _("Without"), _("Role"), _("Right")])


def _order(chosen: Phenomenon, trained: ExperimentRuns) -> None:
    """Show when each role is first taken, over all seeds of each arm."""
    rows = []
    for arm in chosen.arms:
        runs = [run for run in trained.by_arm[arm.name].values() if not run.status.is_active]
        for one in roles.order([roles.timeline(run) for run in runs]):
            step = f"{one.step:,.0f} ± {one.spread:.0f}" if one.n > 1 else f"{one.step:,.0f}"
            rows.append([_(arm.label), _(roles.WORDS[one.role]), step, f"{one.n} / {len(runs)}"])
    if not rows:
        return
    st.markdown(_("**The first head of each role**"))
    show.facts(rows, [_("Model"), _("Role"), _("Step"), _("Seeds")])


recipe.page(ORDER, look)
