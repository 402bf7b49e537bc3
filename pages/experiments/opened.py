"""One experiment: what to expect, what differs, its runs, and what they showed."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.experiments import outcome
from pages.i18n import _, ngettext
from pages.ui import (
    comparison,
    page_table,
    question,
    recorded,
    run_actions,
    run_time,
    run_words,
    seed_button,
    show,
    starts,
    state,
)
from pages.ui.drafts import Draft
from pages.ui.run_actions import Start
from tfm_core.config import FAMILIES, Experiment
from tfm_core.inspect.compare.differences import differences
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration
from tfm_core.inspect.experiments.demonstration import question as question_of
from tfm_core.inspect.experiments.result import ExperimentRuns, missing
from tfm_core.runs.run import Run


def draw(chosen: Demonstration, found: ExperimentRuns, was_live: bool) -> None:
    """Draw the experiment; where its last run has ended, the page once more as a whole."""
    if was_live and not comparison.is_live(found.runs):
        state.draw_anew()  # once: drawn anew, it no longer ticks
    st.header(_(chosen.title), anchor=False)
    _buttons(chosen, found)
    told, seen = st.columns(2, gap="medium")
    with told:
        _differs(chosen)
        if not question.guess(question_of(chosen), f"experiment {chosen.name}"):
            with seen:
                _runs(chosen, found)
                st.caption(_("The curves and answers appear here once you have guessed."))
            return
        st.markdown(_("**Expect:** {words}", words=_(chosen.expects)))
        conclusion = st.container()
        _links(chosen, found)
    with seen:
        outcome.curves(chosen, found)
        _runs(chosen, found)
    outcome.answers(chosen, found)
    with conclusion:  # drawn last: models may have to write for it
        outcome.said(chosen, found)


def _differs(chosen: Demonstration) -> None:
    """Say what all runs have in common, and the one thing that differs."""
    made = [chosen.experiment(arm) for arm in chosen.arms]
    first = made[0]
    rows = [
        _(
            "{setting}: {values}",
            setting=f"**{_(row.label)}**",
            values=" → ".join(_(said) for said in row.texts),
        )
        for row in differences(made)
    ]
    common = _(
        "the same seed, data and {steps} steps of “{task}”, {family}",
        steps=f"{first.training.steps:,}",
        task=_(first.task.facts.label),
        family=_(FAMILIES[first.model.family].label),
    )
    st.markdown(_("**Differs:** {rows}; {common}.", rows="; ".join(rows), common=common))


def _buttons(chosen: Demonstration, found: ExperimentRuns) -> None:
    lacking = missing(chosen, found)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if lacking:
            _start_button(chosen, lacking)
        seed_button.draw(
            lambda: [_start(chosen, arm, chosen.experiment(arm)) for arm in chosen.arms],
            key="experiment",
        )
        if len(found.runs) > 1:
            _link("compare", _("Open in Compare"), comparison.of(found.runs))


def _links(chosen: Demonstration, found: ExperimentRuns) -> None:
    """Lead to where the difference is seen in the model itself."""
    odd = chosen.arms[-1]
    run = found.of_seed(found.seed).get(odd.name)
    query = _of_model(chosen, odd, run)
    walk = {"walk-source": "mine", **({"step": chosen.step} if chosen.step else {})}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if not chosen.is_of_model:
            label = _("One training step of “{arm}”", arm=_(odd.label))
            _link("training-step", label, query)
            return
        label = _("Diagram and code of “{arm}”", arm=_(odd.label))
        _link("build", label, query)
        label = _("Walk through “{arm}”", arm=_(odd.label))
        _link("walk", label, {**query, **walk})


def _start_button(chosen: Demonstration, lacking: Mapping[str, Experiment]) -> None:
    n = len(lacking)
    label = ngettext("Train {n} run", "Train {n} runs", n, n=n)
    label = _(
        "{label}, {time}", label=label, time=run_time.words(run_time.in_sequence(lacking.values()))
    )
    if not st.button(label, type="primary", icon=":material/play_arrow:", key="experiment-start"):
        return
    wanted = [_start(chosen, chosen.arm(name), one) for name, one in lacking.items()]
    try:
        starts.begin(wanted, group=str(_(chosen.title)))
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    st.rerun()


def _start(chosen: Demonstration, arm: Arm, experiment: Experiment) -> Start:
    name = f"{_(chosen.title)}: {_(arm.label)}"
    return Start(experiment, state.device(), name, None, state.threads())


def _link(page: str, label: str, query: dict[str, str]) -> None:
    st.page_link(
        page_table.path_of(page),
        label=label,
        icon=page_table.PAGES[page].icon,
        query_params=query,
        width="content",
    )


def _of_model(chosen: Demonstration, arm: Arm, run: Run | None) -> dict[str, str]:
    """Return the query that shows the model of an arm: its run's, else its configuration."""
    if run is not None:
        return {"show": "run", "run": run.id}
    draft = Draft(chosen.experiment(arm).model_dump())
    return {"show": "draft", **state.configuration_query(draft)}


def _runs(chosen: Demonstration, found: ExperimentRuns) -> None:
    """Say of each run how far it is, and lead to where it can be watched."""
    there = found.of_seed(found.seed)
    if not there:
        words = _(
            "Nothing is trained yet. One press trains them one after the other; their curves are "
            "drawn here as they learn."
        )
        st.info(words, icon=":material/play_circle:")
        return
    for arm in chosen.arms:
        run = there.get(arm.name)
        if run is not None:
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                _run(arm, run)


def _run(arm: Arm, run: Run) -> None:
    status = run.status
    badge = recorded.badge(run) or run_words.badge(status, run.outcome)
    words = f"**{_(arm.label)}** {badge}"
    if status.is_active:
        words += f" {run_words.progress(status)}"
    st.markdown(words, width="content")
    if st.button(
        f":gray[{_('Watch')}]",
        icon=":material/visibility:",
        type="tertiary",
        key=f"experiment-watch-{arm.name}",
        help=_("Look at “{name}” on the Train page.", name=_(arm.label)),
    ):
        run_actions.watch(run)
