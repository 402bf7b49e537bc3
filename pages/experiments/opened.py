"""One experiment: what differs, its runs, and the result."""

from __future__ import annotations

import streamlit as st

from pages.components.live_figure import live_figure
from pages.experiments import outcome
from pages.i18n import _
from pages.ui import show, state
from pages.ui.address import parameters, view_link
from pages.ui.model import question
from pages.ui.navigation import page_table
from pages.ui.runs import comparison, trials
from pages.ui.settings.drafts import Draft
from tfm_core.config import FAMILIES
from tfm_core.inspect.compare.curves import caveats
from tfm_core.inspect.compare.differences import differences
from tfm_core.inspect.experiments import DEMONSTRATIONS
from tfm_core.inspect.experiments.catalogue import BY_THEME
from tfm_core.inspect.experiments.demonstration import THEMES, Demonstration
from tfm_core.inspect.experiments.demonstration import question as question_of
from tfm_core.inspect.experiments.result import ExperimentRuns
from tfm_core.inspect.experiments.trial import Arm
from tfm_core.runs.run import Run

EXPERIMENT = parameters.named(
    "experiment",
    {name: demonstration.title for name, demonstration in DEMONSTRATIONS.items()},
    key="experiment-shown",
)

_THEME_LABELS = {one.name: THEMES[theme] for theme, group in BY_THEME.items() for one in group}


_FEW_ROWS = 3
"""Settings that differ, at most, and are named in the sentence."""


def choose() -> Demonstration:
    """Choose an experiment."""

    def label(name: str) -> str:
        return f"{_(_THEME_LABELS[name])}: {_(DEMONSTRATIONS[name].title)}"

    problem = view_link.receive(EXPERIMENT)
    name = st.selectbox(
        _("Experiment"),
        EXPERIMENT.names,
        format_func=label,
        key=EXPERIMENT.key,
        persist_state="session",
    )
    view_link.warn(problem)
    view_link.say(EXPERIMENT, name)
    return DEMONSTRATIONS[name]


def draw(chosen: Demonstration, trained: ExperimentRuns, was_live: bool) -> None:
    if was_live and not comparison.is_live(trained.runs):
        state.draw_anew()  # once: redrawn, it no longer polls
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        trials.buttons(chosen, trained)
        if len(trained.runs) > 1:
            _link("compare", _("Open in Compare"), comparison.runs_query(trained.runs))
    left, right = st.columns(2, gap="medium")
    with left:
        _differs(chosen)
        if not question.guess(question_of(chosen), chosen.name):
            with right:
                trials.lines(chosen, trained)
            return
        st.markdown(_("**Expect:** {words}", words=_(chosen.expects)))
        conclusion = st.container()
        _links(chosen, trained)
    with right:
        made = [chosen.experiment(arm) for arm in chosen.arms]
        for sentence in caveats(made, chosen.metrics):
            st.caption(f":material/warning: {_(sentence)}")
        figure = trials.curves(chosen, trained)
        if figure is not None:
            live_figure(figure, key="experiment-curves", name=trials.curves_name(chosen))
        trials.lines(chosen, trained)
    outcome.answers(chosen, trained)
    with conclusion:  # drawn last: the models may have to write for it
        outcome.conclusion_box(chosen, trained)


def _differs(chosen: Demonstration) -> None:
    experiments = [chosen.experiment(arm) for arm in chosen.arms]
    first, changes = experiments[0], differences(experiments)
    rows = [f"**{_(row.label)}**: {' → '.join(map(_, row.texts))}" for row in changes]
    is_style = len(changes) > _FEW_ROWS
    if is_style:
        rows = [_("the blocks, in {n} settings", n=len(changes))]
    st.markdown(
        _(
            "**Differs:** {rows}. Same seed, data and {steps} steps: “{task}”, {family}.",
            rows="; ".join(rows),
            steps=f"{first.training.steps:,}",
            task=_(first.task.facts.label),
            family=_(FAMILIES[first.model.family].label),
        )
    )
    if is_style:
        opened = st.expander(
            _("The settings"),
            icon=":material/tune:",
            key="experiment-settings",
            on_change="rerun",
        )
        if not opened.open:
            return
        with opened:
            show.facts(
                [(_(row.label), *map(_, row.texts)) for row in changes],
                [_("Setting"), *(_(arm.label) for arm in chosen.arms)],
            )


def _links(chosen: Demonstration, trained: ExperimentRuns) -> None:
    odd = chosen.arms[-1]
    run = trained.of_seed(trained.seed).get(odd.name)
    query = _of_model(chosen, odd, run)
    walk = {"walk-source": "mine", **({"step": chosen.step} if chosen.step else {})}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if not chosen.is_of_model:
            _link("training-step", _("One training step of “{arm}”", arm=_(odd.label)), query)
            return
        _link("build", _("Diagram and code of “{arm}”", arm=_(odd.label)), query)
        _link("walk", _("Walk through “{arm}”", arm=_(odd.label)), {**query, **walk})


def _link(page: str, label: str, query: dict[str, str]) -> None:
    st.page_link(
        page_table.path_of(page),
        label=label,
        icon=page_table.PAGES[page].icon,
        query_params=query,
        width="content",
    )


def _of_model(chosen: Demonstration, arm: Arm, run: Run | None) -> dict[str, str]:
    """Return the query that shows an arm's model: its run, or its configuration."""
    if run is not None:
        return {"show": "run", "run": run.id}
    draft = Draft(chosen.experiment(arm).model_dump())
    return {"show": "draft", **state.configuration_query(draft)}
