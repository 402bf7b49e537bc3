"""Predict: change one thing, guess what it does, train both, compare."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import streamlit as st

from pages.app import article, show, state
from pages.app.runs import comparison
from pages.app.settings.drafts import Draft
from pages.app.typed import escape
from pages.components.live_figure import live_figure
from pages.i18n import _
from pages.learn.challenges.challenge import ICONS, Challenge
from tfm_core.choices.config import FAMILIES
from tfm_core.inspect.curves import caveats
from tfm_core.inspect.differences import differences
from tfm_core.runs.run import Run
from tfm_core.studies.comparing import Result, result_of, usual
from tfm_core.studies.experiments import BY_THEME, THEMES, Demonstration, conclude
from tfm_core.studies.study import Arm, StudyRuns

_MAX_ANSWERS = 5
_FEW_ROWS = 3
"""Differing settings that the sentence names; more get an expander."""
_THEMES = {each.name: THEMES[theme] for theme, group in BY_THEME.items() for each in group}
_READING = 3
"""Minutes to guess and to read; each training takes about one more."""


def challenge(shown: Demonstration) -> Challenge:
    level = 2
    if shown.writes_freely:  # the curves hide the difference
        level = 3
    elif shown.compare is usual and "same" not in shown.expected:  # the accuracy shows it
        level = 1
    return Challenge(
        {"experiment": shown.name},
        _(shown.title),
        _(_THEMES[shown.name]),
        ICONS[shown.name],
        level,
        _READING + len(shown.arms),
        int(article.is_guessed("experiment", of=shown.name)),
    )


def draw(chosen: Demonstration) -> None:
    trained = comparison.study_runs(chosen)
    comparison.follow(trained.runs, partial(_draw, chosen, trained))


def _draw(chosen: Demonstration, trained: StudyRuns, _is_live: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        comparison.study_buttons(chosen, trained)
        if len(trained.runs) > 1:
            show.link("compare", _("Open in Compare"), comparison.runs_query(trained.runs))
    left, right = st.columns(2, gap="medium")
    with left:
        _differs(chosen)
        if not article.guess(chosen.question, "experiment", of=chosen.name):
            with right:
                comparison.arm_lines(chosen, trained)
            return
        st.markdown(_("**Expect:** {words}", words=_(chosen.expects)))
        conclusion = st.container()
        _links(chosen, trained)
    with right:
        made = [chosen.experiment(arm) for arm in chosen.arms]
        for sentence in caveats(made, chosen.metrics):
            st.caption(f":material/warning: {_(sentence)}")
        figure = comparison.study_curves(chosen, trained)
        if figure is not None:
            live_figure(figure, key="experiment-curves", name=comparison.study_curves_name(chosen))
        comparison.arm_lines(chosen, trained)
    _answers(chosen, trained)
    with conclusion:  # drawn last: the models may have to write for it
        _conclusion_box(chosen, trained)


def _differs(chosen: Demonstration) -> None:
    experiments = [chosen.experiment(arm) for arm in chosen.arms]
    first, changes = experiments[0], differences(experiments)
    named = "; ".join(f"**{_(row.label)}**: {' → '.join(map(_, row.texts))}" for row in changes)
    if len(changes) > _FEW_ROWS:
        named = _("the blocks, in {n} settings", n=len(changes))
    st.markdown(
        _(
            "**The only difference:** {rows}. Task “{task}”, {family}, {steps} steps, same seed.",
            rows=named,
            steps=f"{first.trained.steps:,}",
            task=_(first.task.facts.label),
            family=_(FAMILIES[first.model.family].label),
        )
    )
    if len(changes) > _FEW_ROWS:
        key, icon = "experiment-settings", ":material/tune:"
        opened = st.expander(_("The settings"), icon=icon, key=key, on_change="rerun")
        if opened.open:
            with opened:
                rows = [(_(row.label), *map(_, row.texts)) for row in changes]
                show.facts(rows, [_("Setting"), *(_(arm.label) for arm in chosen.arms)])


def _links(chosen: Demonstration, trained: StudyRuns) -> None:
    odd = chosen.arms[-1]
    run = trained.shown.get(odd.name)
    if run is not None:
        query = {"show": "run", "run": run.id}
    else:
        draft = Draft(chosen.experiment(odd).model_dump())
        query = {"show": "draft", **state.configuration_query(draft)}
    walk = {"walk-source": "mine", **({"part": chosen.step} if chosen.step else {})}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if not chosen.is_of_model:
            show.link("training-step", _("One training step of “{arm}”", arm=_(odd.label)), query)
            return
        show.link("build", _("Diagram and code of “{arm}”", arm=_(odd.label)), query)
        show.link("walk", _("Walk through “{arm}”", arm=_(odd.label)), {**query, **walk})


def _conclusion_box(chosen: Demonstration, trained: StudyRuns) -> None:
    takes_time = chosen.writes_freely and trained.runs
    words = _("Writing unseen sentences …")
    with st.spinner(words, show_time=False) if takes_time else nullcontext():
        results = {arm.name: _results(chosen, trained, arm) for arm in chosen.arms}
    conclusion = conclude(chosen, results)
    if conclusion is None:
        if any(results.values()):
            st.caption(_("The result appears when all runs finish."))
        return
    icon = ":material/check_circle:" if conclusion.is_expected else ":material/help:"
    with st.container(border=True, key="experiment-conclusion"):
        for finding in conclusion.findings:
            st.markdown(_("**Shown:** {words}", words=_(finding.sentence)))
        for sentence in conclusion.seeds:
            st.markdown(f":material/balance: {_(sentence)}")
        st.markdown(f"{icon} {_(conclusion.verdict)}")


def _results(chosen: Demonstration, trained: StudyRuns, arm: Arm) -> dict[int, Result]:
    results = {}
    for seed, run in trained.ended(arm).items():
        mark = (run.id, run.status.state, run.status.step)
        result = _read(mark, chosen.writes_freely, chosen.looks_sharply, run)
        results[seed] = replace(result, label=arm.label)
    return results


@st.cache_data(show_spinner=False, max_entries=256)
def _read(mark: tuple[object, ...], writes_freely: bool, looks_sharply: bool, _run: Run) -> Result:
    return result_of(_run, "", writes_freely=writes_freely, looks_sharply=looks_sharply)


def _answers(chosen: Demonstration, trained: StudyRuns) -> None:
    written = {
        _(chosen.arm(name).label): answers
        for name, run in trained.shown.items()
        if (answers := _written(run))
    }
    if not written:
        return
    st.subheader(_("What they write"), anchor=False)
    shared = list(dict.fromkeys(pair for answers in written.values() for pair in answers))
    rows = []
    for src, tgt in shared[:_MAX_ANSWERS]:
        given = [answers.get((src, tgt)) for answers in written.values()]
        marks = [
            "–" if text is None else f"{'✓' if text == tgt else '✗'} {escape(text)}"
            for text in given
        ]
        rows.append([escape(src), escape(tgt), *marks])
    show.facts(rows, [_("Source"), _("Truth"), *written])


def _written(run: Run) -> Mapping[tuple[str, str], str]:
    """Return a run's last answer by (source, target) of each stored example."""
    try:
        items, steps = run.probe().items, run.snapshot_steps()
        texts = run.snapshot(steps[-1]).texts if steps else None
    except ValueError:
        return {}
    pairs = [(str(item.get("src_text")), str(item.get("tgt_text"))) for item in items]
    return dict(zip(pairs, texts or (), strict=False))
