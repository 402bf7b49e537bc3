"""Wrong labels: a model first reads past them, then learns them by heart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import pandas as pd
import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.runs import comparison, runs_access, studies
from pages.components.live_figure import live_figure
from pages.findings import recipe
from pages.i18n import _, ngettext, paragraph
from tfm_core.inspect.compare.curves import track
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies import memorising
from tfm_core.studies.memorising import BY_WIDTH, MEMORISED, MEMORISING, RISE
from tfm_core.studies.phenomenon import Phenomenon, spread
from tfm_core.studies.study import StudyRuns

_SHOWN = 12  # mislabelled digits


def look(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the curves, the mislabelled digits, the control, the correction, and more widths."""
    run = recipe.shown_run(chosen, trained)
    found = None if run is None else memorising.answers(run)
    is_begun = found is not None and len(found[0]) > 1
    if is_begun:
        st.markdown(_verdict(chosen, trained))
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    if run is not None and found is not None and is_begun:
        table, answers = found
        with right:
            _mislabelled(table, answers.shape[1])
        _digits(run, table["step"].tolist(), answers)
        left, right = st.columns(2, gap="medium")
        with left:
            _control(chosen, trained)
        with right:
            _correction(run)
    with left:
        comparison.follow(studies.at_hand(BY_WIDTH).runs, _draw_widths)


def _verdict(chosen: Phenomenon, trained: StudyRuns) -> str:
    """Return when the wrong labels were memorised, over all seeds, and the rule."""
    runs = list(trained.ended(chosen.arms[0]).values())
    rule = paragraph("discover/memorising-rule", share=whole_percent(MEMORISED))
    steps = [memorising.memorised(memorising.answers(one)[0]) for one in runs]
    there = [step for step in steps if step is not None]
    rises = memorising.rises(map(runs_access.curves, runs))
    if not there or rises.empty:
        return _("**Shown:** nothing is memorised so far.") + f" {rule}"
    step = spread(there)
    words = (
        _("**Shown:** the wrong labels are memorised at step {step}.", step=step)
        if len(runs) == 1
        else _(
            "**Shown:** the wrong labels are memorised at step {step}, in {n} of {all} seeds.",
            step=step,
            n=len(there),
            all=len(runs),
        )
    )
    validation = _(
        "Validation accuracy is highest at step {best_step}, with {best}, and ends at {last}.",
        best_step=spread(rises["best_accuracy_step"]),
        best=_share(rises["best_accuracy"]),
        last=_share(rises["accuracy"]),
    )
    return f"{words} {validation} {rule}"


def _share(values: pd.Series[float]) -> str:
    return f"{spread(100 * values, '.1f')}\u00a0%"


def _mislabelled(table: pd.DataFrame, n: int) -> None:
    """Draw what the model says of the n mislabelled digits over the training."""
    x = table["step"].to_numpy(float)
    lines = [
        RunLine(_("as the wrong label"), 1, x, table["given"].to_numpy()),
        RunLine(_("as what they are"), 2, x, table["true"].to_numpy()),
    ]
    title = _("{n} mislabelled training digits are read", n=f"{n:,}")
    step = memorising.memorised(table)
    recipe.draw_lines(
        [CurvePanel(title, lines, is_share=True)],
        _("step"),
        key="discover-mislabelled",
        name=title,
        reference=None if step is None else {"x": step, "words": _("memorised")},
    )


def _digits(run: Run, steps: Sequence[int], every: memorising.Integers) -> None:
    """Show some mislabelled digits, and what the model says of them at a step."""
    images, *labels = memorising.mislabelled(run.experiment)
    step = st.select_slider(
        _("Read at step"),
        steps,
        value=steps[-1],
        format_func=lambda step: f"{step:,}",
        key=f"memorising-step-{steps[-1]}",  # follows a training
    )
    answers = every[steps.index(step)]
    with st.container(horizontal=True, gap="small", key="memorising-digits"):
        for n in range(min(_SHOWN, len(answers))):
            given, true, said = (int(values[n]) for values in (*labels, answers))
            colour = {given: "red", true: "green"}.get(said, "gray")
            name = _("a {true}, labelled {given}", true=true, given=given)
            with st.container(width=80, gap=None):
                url = picture_url(images[n])
                st.html(f'<img class="mistake" alt="{escape(name)}" src="{url}">')
                st.markdown(_("label {given}", given=given))
                st.markdown(f":{colour}[**{_('read {said}', said=said)}**]")
    st.caption(paragraph("discover/memorising-digits"))


def _control(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Compare what validation reached at its best, and at the end, with right labels."""
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
    """Offer to train on with right labels, and show what becomes of the wrong ones."""
    cure = memorising.correction(run)
    if run.status.is_active or cure is None:
        return
    st.markdown(_("**Cause:** correct the labels, and train on."))
    other = memorising.corrected(run, visitors.at_hand())
    if other is None:
        studies.cure_button(run, cure, key="memorising-correct")
    else:
        comparison.follow([other], partial(_corrected, run, other))


def _corrected(run: Run, other: Run, _was_live: bool) -> None:
    since, curves = other.meta.cured_from, runs_access.curves(other)
    lines = [
        RunLine(label, slot, curve.x, curve.values)
        for slot, (metric, label) in enumerate(
            {"accuracy": _("training"), "validation-accuracy": _("validation")}.items()
        )
        if (curve := track(curves, other.experiment, metric, "step")) is not None
    ]
    panel = CurvePanel(_("accuracy"), lines, is_share=True, is_noisy=True)
    recipe.draw_lines(
        [panel],
        _("step"),
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
            [words, *(show.percent(float(table[name].iloc[-1])) for table in tables)]
            for name, words in (
                ("given", _("as the wrong label")),
                ("true", _("as what they are")),
            )
        ],
        [_("Mislabelled digits are read"), _("Before"), _("After")],
    )
    steps = memorising.forgotten(curves, since, run.experiment.task.model_dump()["label_noise"])
    if steps is not None:
        st.caption(paragraph("discover/memorising-forgotten", steps=f"{steps:,}"))


def _draw_widths(_was_live: bool) -> None:
    trained = studies.at_hand(BY_WIDTH)
    st.markdown(_("**Double descent:** the same labels, and models of several widths."))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        studies.buttons(BY_WIDTH, trained, stays=True, key="memorising-widths", is_first=False)
    found = memorising.by_width(
        (int(arm.name), runs_access.curves(run))
        for arm in BY_WIDTH.arms
        for run in trained.by_arm[arm.name].values()
    )
    if len(found) > 1:
        _by_width(found)
    if comparison.is_live(trained.runs):
        comparison.progress(trained.runs)
    if n := len(trained.stopped):
        st.caption(ngettext("{n} run ended early.", "{n} runs ended early.", n, n=n))


def _by_width(found: pd.DataFrame) -> None:
    widths, mean, sd = (found[name].to_numpy(float) for name in ("width", "error", "sd"))
    n, low, high = int(found["n"].min()), mean - sd, mean + sd
    titles = _("validation error"), _("wrong on training")
    lines = [
        RunLine(title, slot, widths, values)
        for slot, (title, values) in enumerate(
            zip(titles, (mean, 1 - found["fitted"].to_numpy()), strict=True)
        )
    ]
    band = RunLine(comparison.mean_label(titles[0], n, n), 0, widths, mean, low, high)
    panels = [
        CurvePanel(titles[0], [band] if n > 1 else lines[:1], is_share=True),
        CurvePanel(titles[1], lines[1:], is_share=True),
    ]
    figure = plots.comparison(panels, "d_model", height=recipe.HEIGHT)
    figure.update_layout(yaxis={"range": [min(low) - RISE, max(high) + RISE]})
    figure.update_xaxes(type="log", tickvals=widths.tolist(), ticktext=[f"{w:.0f}" for w in widths])
    live_figure(figure, key="discover-widths", name=_("Errors by width"))
    places = memorising.second_descent(mean.tolist())
    rule = paragraph("discover/memorising-descent", rise=f"{100 * RISE:.0f}")
    seeds = _("Seeds: {n}.", n=n)
    if places is None:
        st.markdown(_("**Shown:** no second descent.") + f" {rule} {seeds}")
        return
    spreads = [f" ± {100 * one.sd:.1f}" if one.n > 1 else "" for one in found.itertuples()]
    first, peak, second = (f"{100 * mean[at]:.1f}{spreads[at]}\u00a0%" for at in places)
    first_width, peak_width, second_width = (f"{widths[at]:.0f}" for at in places)
    words = _(
        "**Shown:** the error falls to {first} at d_model {first_width}, rises to {peak} at "
        "{peak_width}, and falls again, to {second} at {second_width}.",
        first=first,
        first_width=first_width,
        peak=peak,
        peak_width=peak_width,
        second=second,
        second_width=second_width,
    )
    st.markdown(f"{words} {rule} {seeds}")


recipe.page(MEMORISING, look)
