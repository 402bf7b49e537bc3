"""Where it fails: confusion matrix, worst errors, groups and calibration."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.i18n import _, paragraph
from pages.mistakes import controls, evaluated, gallery, parts
from pages.mistakes.link import ORDER, SHOW, STEP
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.runs import runs_access, shown_run
from pages.ui.typed import escape
from tfm_core.inspect.compare.conclusions import wilson
from tfm_core.inspect.errors.answers import Answers, steps_of
from tfm_core.inspect.errors.examples import n_alike
from tfm_core.inspect.errors.groups import of_examples
from tfm_core.inspect.errors.scores import confusion
from tfm_core.runs.run import Run

PARTS = {
    "groups": parts.groups,
    "tokens": parts.tokens,
    "calibration": parts.calibrated,
    "scores": parts.scores,
}
FIRST = "recorded-digits"
_FITTING = {
    "text": "recorded-korean",
    "own": "recorded-korean",
    "caption": "recorded-captions",
    "corpus": "recorded-grammar",
}
"""The recorded run of each kind of task; FIRST for pictures."""


def page() -> None:
    """Judge the current run, or the first there is, on its validation set."""
    show.header("mistakes")
    run = run_to_judge()
    if run is None:
        show.empty(_("No run to judge yet: train one."), _("Train a model"), "train")
        return
    if run.problem:
        unfit(run, run.problem)
        return
    if not run.meta.recorded:  # else the summary says so
        shown_run.unchosen_caption(run)
    controls.begin(run)
    try:
        steps = steps_of(run)
        with st.container(key="mistakes-step-area", horizontal=True, vertical_alignment="center"):
            with st.container(width=360):
                step = view_link.weights_step(STEP, steps)
            summary_place = st.container(width="stretch")
        answers = evaluated.answers(run, step)
    except ValueError as error:
        unfit(run, error)
        return
    if answers is None:
        summary_place.markdown(measured_then(run, step))
        return
    summary_place.markdown(summary(run, answers))
    _draw(run, answers)
    shown_run.recorded_note(run, key="mistakes")
    if step != steps[-1]:  # the other steps are evaluated meanwhile
        at = steps.index(step)
        evaluated.evaluations().prefetch(
            run, tuple(sorted(steps, key=lambda other: abs(steps.index(other) - at)))
        )


def _draw(run: Run, answers: Answers) -> None:
    cell, (counts, wrong) = controls.cell(), confusion(answers)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        parts.matrix(answers, counts, wrong, cell)
    with right:
        names = parts.offered(run, answers)
        with st.container(horizontal=True, gap="small"):
            offered = replace(SHOW, names=names)
            part = view_link.choice(_("What is shown"), offered, is_labelled=False)
            if part == "worst":
                order = view_link.choice(_("Order"), ORDER, is_labelled=False)
        if part == "worst":
            gallery.gallery(run, answers, counts.index.tolist(), cell, order)
        else:
            PARTS[part](run, answers)


def run_to_judge() -> Run | None:
    """Return the run to judge; None if there is none at all."""
    run_id = state.current_run_id()
    if run_id is not None:
        return runs_access.store().get(run_id)
    able = [run for run in visitors.listed() if not run.problem and run.has_checkpoint]
    return shown_run.first_to_show(able, FIRST)


def unfit(run: Run, why: str | BaseException) -> None:
    """Show why a run cannot be judged, and offer a recorded one of its kind."""
    show.problem(why)
    kind = "" if run.problem else run.experiment.task.kind
    wanted = _FITTING.get(kind, FIRST)
    other = {each.id: each for each in visitors.listed() if each.meta.recorded}.get(wanted)
    if other is None or other.id == run.id:
        return
    st.button(
        _("Show “{name}”", name=other.meta.name),
        icon=":material/inventory_2:",
        type="primary",
        key="mistakes-recorded",
        on_click=state.set_current_run,
        args=(other.id,),
    )


def summary(run: Run, answers: Answers) -> str:
    counts = _language(answers) if answers.is_language else _counted(answers)
    if run.experiment.task.is_opened:
        data = paragraph("mistakes/opened")
    elif answers.n_examples < answers.n_all:
        data = _(
            "The first {n} of {all} validation examples; the test set is not touched.",
            n=f"{answers.n_examples:,}",
            all=f"{answers.n_all:,}",
        )
    else:
        data = _("The test set is not touched.")
    words = f"{shown_run.origin_badge(run)} {escape(run.meta.name)}: {counts} {data}".strip()
    alike = n_alike(run, answers)
    return f"{words} {paragraph('mistakes/alike', n=f'{alike:,}')}" if alike else words


def measured_then(run: Run, step: int) -> str:
    """Return the validation score measured in training, at or before a step."""
    curve = runs_access.curves(run).validation
    is_past = curve["step"] <= step
    if not is_past.any():
        return ""
    return _(
        "During training, at step {at}: {share} of the answers right.",
        share=show.percent(float(curve["accuracy"][is_past][-1])),
        at=f"{int(curve['step'][is_past][-1]):,}",
    )


def _counted(answers: Answers) -> str:
    is_right, _loss = of_examples(answers)
    n, wrong = len(is_right), int((~is_right).sum())
    low, high = wilson(n - wrong, n)
    words = paragraph(
        "mistakes/wrong",
        n=f"{n:,}",
        wrong=f"{wrong:,}",
        share=show.percent((n - wrong) / n),
        low=show.percent(low),
        high=show.percent(high),
    )
    if answers.unit != "token":
        return words
    tokens, total = show.percent(answers.n_right / len(answers.truth)), f"{len(answers.truth):,}"
    forced = _(
        "With teacher forcing, {tokens} of {all} tokens are right.", tokens=tokens, all=total
    )
    return f"{words} {forced}"


def _language(answers: Answers) -> str:
    n = len(answers.truth)
    low, high = wilson(answers.n_right, n)
    return paragraph(
        "mistakes/language",
        loss=f"{float(answers.loss.mean(dtype=float)):.3f}",
        n=f"{n:,}",
        share=show.percent(answers.n_right / n),
        low=show.percent(low),
        high=show.percent(high),
    )


page()
