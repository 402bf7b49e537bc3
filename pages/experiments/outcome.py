"""The result of an experiment: a sentence, curves and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from pages.i18n import _
from pages.ui import show
from pages.ui.typed import escape
from tfm_core.inspect.experiments.demonstration import Demonstration
from tfm_core.inspect.experiments.findings import conclude
from tfm_core.inspect.experiments.result import ExperimentRuns, Result, read
from tfm_core.inspect.experiments.trial import Arm
from tfm_core.runs.run import Run

_MAX_ANSWERS = 5


def conclusion_box(chosen: Demonstration, trained: ExperimentRuns) -> None:
    if chosen.writes_freely and trained.runs:
        with st.spinner(_("Writing unseen sentences …"), show_time=False):
            results = _results(chosen, trained)
    else:
        results = _results(chosen, trained)
    n_over = sum(len(by_seed) > 0 for by_seed in results.values())
    conclusion = conclude(chosen, results)
    if not conclusion.findings:
        if n_over:
            st.caption(_("The result appears when all runs finish."))
        return
    icon = ":material/check_circle:" if conclusion.is_expected else ":material/help:"
    with st.container(border=True, key="experiment-conclusion"):
        for finding in conclusion.findings:
            st.markdown(_("**Shown:** {words}", words=_(finding.sentence)))
        for sentence in conclusion.seeds:
            st.markdown(f":material/balance: {_(sentence)}")
        if conclusion.verdict is not None:
            st.markdown(f"{icon} {_(conclusion.verdict)}")


def _results(chosen: Demonstration, trained: ExperimentRuns) -> dict[str, dict[int, Result]]:
    return {
        arm.name: {
            seed: _result(chosen, arm, run)
            for seed, run in trained.by_arm[arm.name].items()
            if not run.status.is_active
        }
        for arm in chosen.arms
    }


def _result(chosen: Demonstration, arm: Arm, run: Run) -> Result:
    status = run.status
    mark = (run.id, status.state, status.step)
    result = _read(mark, chosen.writes_freely, chosen.looks_sharply, run)
    return replace(result, label=arm.label)


@st.cache_data(show_spinner=False, max_entries=256)
def _read(mark: tuple[object, ...], writes_freely: bool, looks_sharply: bool, _run: Run) -> Result:
    return read(_run, "", writes_freely=writes_freely, looks_sharply=looks_sharply)


def answers(chosen: Demonstration, trained: ExperimentRuns) -> None:
    there = trained.of_seed(trained.seed)
    by_arm = {
        _(arm.label): answered
        for arm in chosen.arms
        if arm.name in there and (answered := _answered(there[arm.name]))
    }
    if not by_arm:
        return
    st.subheader(_("What they write"), anchor=False)
    columns = [_("Source"), _("Truth"), *by_arm]
    shared = list(dict.fromkeys(key for answered in by_arm.values() for key in answered))
    rows = [
        [
            escape(src),
            escape(tgt),
            *(_marked(answered.get((src, tgt)), tgt) for answered in by_arm.values()),
        ]
        for src, tgt in shared[:_MAX_ANSWERS]
    ]
    show.facts(rows, columns)


def _marked(answer: str | None, truth: str) -> str:
    if answer is None:
        return "–"
    return f"{'✓' if answer == truth else '✗'} {escape(answer)}"


def _answered(run: Run) -> Mapping[tuple[str, str], str]:
    """Return a run's last answer by (source, target) of each stored example."""
    try:
        probe, steps = run.probe(), run.snapshot_steps()
        texts = run.snapshot(steps[-1]).texts if steps else None
    except ValueError:
        return {}
    if texts is None:
        return {}
    return {
        (str(item["src_text"]), str(item["tgt_text"])): text
        for item, text in zip(probe.items, texts, strict=False)
        if "src_text" in item and "tgt_text" in item
    }
