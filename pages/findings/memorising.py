"""Wrong labels: a model first reads past them, then learns them by heart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import pandas as pd
import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.runs import comparison, runs_access
from pages.findings import recipe
from pages.i18n import N_, _, ngettext, paragraph
from tfm_core.inspect.curves import track
from tfm_core.plots.png import picture_url
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies import memorising
from tfm_core.studies.memorising import BY_WIDTH, MEMORISED, RISE
from tfm_core.studies.phenomenon import Phenomenon, over_runs, spread
from tfm_core.studies.study import StudyRuns

_SHOWN = 12  # mislabelled digits


def draw(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the curves, the mislabelled digits, the control, the correction, and more widths."""
    run = recipe.shown_run(chosen, trained)
    measured = None if run is None else memorising.answers(run)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    if run is not None and measured is not None and len(measured[0]) > 1:
        table, answers = measured
        x = table["step"].to_numpy(float)
        lines = {
            _("as the wrong label"): (x, table["given"].to_numpy()),
            _("as the true digit"): (x, table["true"].to_numpy()),
        }
        title = _("{n} mislabelled digits read", n=f"{answers.shape[1]:,}")
        step = memorising.memorised(table)
        line = None if step is None else {"x": step, "words": _("memorised")}
        with right:
            recipe.draw({title: lines}, key="discover-mislabelled", name=title, reference=line)
        st.markdown(_result(chosen, trained))
        _digits(run, table["step"].tolist(), answers)
        left, right = st.columns(2, gap="medium")
        with left:
            _control(chosen, trained)
        with right:
            _correction(run)
    with left:
        comparison.follow(comparison.study_runs(BY_WIDTH).runs, _draw_widths)


def _result(chosen: Phenomenon, trained: StudyRuns) -> str:
    """Return when the wrong labels were memorised, over all seeds, and the rule."""
    runs = list(trained.ended(chosen.arms[0]).values())
    rule = paragraph("discover/memorising-rule", share=whole_percent(MEMORISED))
    steps = [memorising.memorised(memorising.answers(run)[0]) for run in runs]
    rises = memorising.rises(map(runs_access.curves, runs))
    if not any(steps) or rises.empty:
        return _("**Shown:** nothing is memorised so far.") + f" {rule}"
    result = _(
        "**Shown:** the wrong labels are memorised at step {step} (seeds: {n}).",
        step=over_runs(steps),
        n=len(runs),
    )
    validation = _(
        "Validation accuracy is highest at step {best_step}, with {best}, and ends at {last}.",
        best_step=spread(rises["best_accuracy_step"]),
        best=_share(rises["best_accuracy"]),
        last=_share(rises["accuracy"]),
    )
    return f"{result} {validation} {rule}"


def _share(values: pd.Series[float]) -> str:
    return f"{spread(100 * values, '.1f')}\u00a0%"


def _digits(run: Run, steps: Sequence[int], every: memorising.Integers) -> None:
    """Show some mislabelled digits, and how the model reads them at a step."""
    images, *labels = memorising.mislabelled(run.experiment)
    answers = every[steps.index(recipe.step(N_("Read at step"), steps, "digits"))]
    with st.container(horizontal=True, gap="small", key="memorising-digits"):
        for n in range(min(_SHOWN, len(answers))):
            given, true, answer = (int(values[n]) for values in (*labels, answers))
            colour = {given: "red", true: "green"}.get(answer, "gray")
            name = _("a {true}, labelled {given}", true=true, given=given)
            with st.container(width=80, gap=None):
                url = picture_url(images[n])
                st.html(f'<img class="mistake" alt="{escape(name)}" src="{url}">')
                st.markdown(_("label {given}", given=given))
                read = _("read as {answer}", answer=answer)
                st.markdown(f":{colour}[**{read}**]")
    st.caption(paragraph("discover/memorising-digits"))


def _control(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Compare the best and the last validation with those of right labels."""
    rows = []
    for arm in chosen.arms:
        rises = memorising.rises(map(runs_access.curves, trained.ended(arm).values()))
        if len(rises):
            accuracy = [_share(rises[name]) for name in ("best_accuracy", "accuracy")]
            loss = [spread(rises[name], ".2f") for name in ("best_loss", "loss")]
            rows.append([_(arm.label), str(len(rises)), " → ".join(accuracy), " → ".join(loss)])
    if rows:
        st.markdown(_("**Control:** the same digits with right labels."))
        columns = [_("Training"), _("Seeds"), _("Accuracy, best → end"), _("Loss, lowest → end")]
        show.facts(rows, columns)


def _correction(run: Run) -> None:
    """Offer to train on with right labels, and show how the mislabelled digits are then read."""
    correction = memorising.correction(run)
    if run.status.is_active or correction is None:
        return
    st.markdown(_("**Cause:** correct the labels, and train on."))
    corrected = memorising.corrected(run, visitors.available_runs())
    if corrected is None:
        comparison.cure_button(run, correction, key="memorising-correct")
    else:
        comparison.follow([corrected], partial(_corrected, run, corrected))


def _corrected(run: Run, other: Run, _was_live: bool) -> None:
    since, curves = other.meta.cured_from, runs_access.curves(other)
    lines = {
        label: (curve.x, curve.values)
        for metric, label in {
            "accuracy": _("training"),
            "validation-accuracy": _("validation"),
        }.items()
        if (curve := track(curves, other.experiment, metric, "step")) is not None
    }
    recipe.draw(
        {_("accuracy"): lines},
        key="discover-corrected",
        name=_("Accuracy before and after"),
        reference={"x": since, "words": _("corrected")},
    )
    if other.status.is_active:
        return
    tables = [memorising.answers(run)[0], memorising.answers(other, of=run)[0]]
    if any(table.empty for table in tables):
        return
    show.facts(
        [
            [label, *(show.percent(float(table[name].iloc[-1])) for table in tables)]
            for name, label in (
                ("given", _("as the wrong label")),
                ("true", _("as the true digit")),
            )
        ],
        [_("Mislabelled digits are read"), _("Before"), _("After")],
    )
    steps = memorising.forgotten(curves, since, run.experiment.task.model_dump()["label_noise"])
    if steps is not None:
        st.caption(paragraph("discover/memorising-forgotten", steps=f"{steps:,}"))


def _draw_widths(_was_live: bool) -> None:
    trained = comparison.study_runs(BY_WIDTH)
    st.markdown(_("**Double descent:** the same labels, and models of several widths."))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        comparison.study_buttons(
            BY_WIDTH, trained, stays=True, key="memorising-widths", is_first=False
        )
    by_width = memorising.by_width(
        (int(arm.name), runs_access.curves(run))
        for arm in BY_WIDTH.arms
        for run in trained.by_arm[arm.name].values()
    )
    if len(by_width) > 1:
        _by_width(by_width)
    if comparison.is_live(trained.runs):
        comparison.progress(trained.runs)
    if n := len(trained.stopped):
        st.caption(ngettext("{n} run ended early.", "{n} runs ended early.", n, n=n))


def _by_width(table: pd.DataFrame) -> None:
    widths, mean, sd = (table[name].to_numpy(float) for name in ("width", "error", "sd"))
    n, low, high = int(table["n"].min()), mean - sd, mean + sd
    titles = _("validation error"), _("training error")
    label = comparison.mean_label(titles[0], n, n) if n > 1 else titles[0]
    ticks = {"tickvals": widths.tolist(), "ticktext": [f"{w:.0f}" for w in widths]}
    recipe.draw(
        {
            titles[0]: {label: (widths, mean, low, high)},
            titles[1]: {titles[1]: (widths, 1 - table["fitted"].to_numpy())},
        },
        "d_model",
        key="discover-widths",
        name=_("Errors by width"),
        layout={
            "yaxis": {"range": [min(low) - RISE, max(high) + RISE]},
            "xaxis": {"type": "log", **ticks},
        },
    )
    turns = memorising.second_descent(mean.tolist())
    rule = paragraph("discover/memorising-descent", rise=f"{100 * RISE:.0f}")
    seeds = _("Seeds: {n}.", n=n)
    if turns is None:
        st.markdown(_("**Shown:** no second descent.") + f" {rule} {seeds}")
        return
    spreads = [f" ± {100 * row.sd:.1f}" if row.n > 1 else "" for row in table.itertuples()]
    first, peak, second = (f"{100 * mean[at]:.1f}{spreads[at]}\u00a0%" for at in turns)
    first_width, peak_width, second_width = (f"{widths[at]:.0f}" for at in turns)
    result = _(
        "**Shown:** the error falls to {first} at d_model {first_width}, rises to {peak} at "
        "{peak_width}, and falls again, to {second} at {second_width}.",
        first=first,
        first_width=first_width,
        peak=peak,
        peak_width=peak_width,
        second=second,
        second_width=second_width,
    )
    st.markdown(f"{result} {rule} {seeds}")
