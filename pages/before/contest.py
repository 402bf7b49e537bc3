"""Three attentions on one task: train them, compare curves, figures and maps."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.before import maps
from pages.before.maps import FIGURES, LABELS, SHORT
from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.fact_line import fact_line, joined
from pages.ui.model import question
from pages.ui.runs import comparison, run_actions, runs_access, shown_run
from tfm_core.config import TEXT_TASKS, TextTaskConfig
from tfm_core.inspect.attention import questions, rnn_attention
from tfm_core.inspect.attention.rnn_attention import Contest, CrossAttentionAtStep
from tfm_core.inspect.compare import conclusions
from tfm_core.plots.heads.before import STYLES
from tfm_core.plots.model.positions import race
from tfm_core.runs.run import Run

FIRST_STEPS = 600
_CONTEST = "before-contest"


def view() -> None:
    task, steps, seed = _controls()
    contests = rnn_attention.contests(visitors.at_hand())
    contest = comparison.choose_group(contests, _name, key=_CONTEST) if contests else None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if contest is None:
            st.info(_("Nothing to compare yet: train all three."), icon=":material/info:")
        else:
            shown_run.recorded_comparison_note(contest.values())
        if st.button(
            _("Train all three"), type="primary", icon=":material/play_arrow:", key="before-train"
        ):
            _start(task, steps, seed)
    if contest is None:
        return
    is_live = comparison.is_live(contest.values())
    st.fragment(_draw, run_every=comparison.TICK if is_live else None)(contest, is_live)


def _controls() -> tuple[str, int, int]:
    """Ask for what all three are trained on; return the task, the steps and the seed."""
    names = rnn_attention.tasks()
    facts, choices = fact_line("before")
    with choices:
        task = st.selectbox(
            _("Task"),
            names,
            format_func=lambda name: _(TEXT_TASKS[name].label),
            key="before-task",
            help=_("All learn from the same batches in order."),
        )
        steps = st.slider(
            _("Steps per run"),
            100,
            3000,
            FIRST_STEPS,
            step=100,
            key="before-steps",
            help=_("Batches of 64 pairs."),
        )
        seed = int(st.number_input(_("Seed"), 0, 999, 0, key="before-seed"))
    task = task or names[0]
    label = f"**{_(TEXT_TASKS[task].label)}**"
    length = _("{n} steps", n=f"{steps:,}")
    facts.caption(joined(label, length, _("seed {seed}", seed=seed)))
    return task, steps, seed


def _start(task: str, steps: int, seed: int) -> None:
    """Queue one run per model; runs queued before a refusal stay."""
    racers = rnn_attention.racers(task, steps=steps, seed=seed)
    for name, racer in racers.items():
        label = f"{_(TEXT_TASKS[task].label)}: {_(LABELS[name])}"
        if run_actions.start(racer, name=label) is None:
            return
    st.session_state.pop(_CONTEST, None)
    st.rerun()


def _draw(contest: Contest, was_live: bool) -> None:
    if was_live and not comparison.is_live(contest.values()):
        state.draw_anew()  # once: redrawn, it no longer polls
    if was_live:
        comparison.progress(contest.values())
    attentions = {name: rnn_attention.cross_attention_at(run) for name, run in contest.items()}
    left, right = st.columns(2, gap="medium")
    with left:
        _curves(contest)
    with right:
        asked = questions.about_alignment(_aligned(attentions))
        of = " ".join(run.id for run in contest.values())
        if was_live or asked is None or question.guess(asked, "alignment", of=of):
            _table(contest, attentions)
    maps.maps(contest, attentions)


def _curves(contest: Contest) -> None:
    series = {}
    for name, run in contest.items():
        validation = runs_access.curves(run).validation
        if len(validation):
            series[name] = (_(LABELS[name]), validation["step"], validation["sequence_accuracy"])
    if not series:
        st.info(_("Waiting for the first measurement."), icon=":material/hourglass_empty:")
        return
    show.live_figure(
        race(series, _("step"), _("whole sequences right"), styles=STYLES),
        _("Whole unseen sequences right, during training."),
        key="before-curves",
    )


def _table(contest: Contest, attentions: dict[str, CrossAttentionAtStep | None]) -> None:
    columns = {_(SHORT[name]): _column(run, attentions[name]) for name, run in contest.items()}
    st.table(pd.DataFrame(columns, index=[_(words) for words in FIGURES]))
    words = _conclusion(contest, attentions) or _("How the figures are measured")
    st.markdown(words, help=paragraph("before/figures"))


def _aligned(attentions: dict[str, CrossAttentionAtStep | None]) -> dict[str, float]:
    return {
        _(SHORT[name]): attention.share
        for name, attention in attentions.items()
        if attention and attention.is_scored
    }


def _conclusion(contest: Contest, attentions: dict[str, CrossAttentionAtStep | None]) -> str:
    whole = {name: _whole(run) for name, run in contest.items()}
    right = {_(SHORT[name]): share for name, share in whole.items() if share is not None}
    aligned = _aligned(attentions)
    task = next(iter(contest.values())).experiment.task_as(TextTaskConfig)
    is_live = comparison.is_live(contest.values())
    n = task.n_validation if is_live else task.n_test
    sentences = [conclusions.most_right(right, n), conclusions.best_aligned(aligned, right, n)]
    words = " ".join(_(sentence) for sentence in sentences if sentence is not None)
    return _("So far: {words}", words=words) if is_live and words else words


def _whole(run: Run) -> float | None:
    curves = runs_access.curves(run)
    whole = curves.test.last("sequence_accuracy")
    return curves.validation.last("sequence_accuracy") if whole is None else whole


def _column(run: Run, attention: CrossAttentionAtStep | None) -> list[str]:
    status, whole = run.status, _whole(run)
    scored = attention if attention is not None and attention.is_scored else None
    return [
        "–" if whole is None else show.percent(whole),
        "–" if scored is None else show.percent(scored.share),
        "–" if scored is None else f"{scored.aer:.3f}",
        f"{_parameters(run.id, run):,}",
        show.duration(status.seconds) if status.seconds else "–",
        f"{1000 * status.seconds / status.step:.1f} ms" if status.step else "–",
    ]


@st.cache_data(show_spinner=False, max_entries=64)
def _parameters(run_id: str, _run: Run) -> int:
    return rnn_attention.n_parameters(_run)


def _name(contest: Contest) -> str:
    run = next(iter(contest.values()))
    experiment = run.experiment
    return _(
        "{task}, {steps} steps, seed {seed}: {n} models, {when}",
        task=_(experiment.task.facts.label),
        steps=f"{experiment.training.steps:,}",
        seed=experiment.seed,
        n=len(contest),
        when=show.ago(run.meta.created),
    )
