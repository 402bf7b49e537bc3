"""Good practice: one guided way from a split to a number on the test set."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.model import question
from pages.app.runs import runs_access
from pages.i18n import N_, _, paragraph
from pages.learn.practice import steps
from pages.learn.practice.steps import NAMES, Runs
from tfm_core.choices.config import to_json
from tfm_core.inspect.compare import conclusions
from tfm_core.inspect.practice import evaluation, lesson, questions
from tfm_core.inspect.practice.evaluation import Evaluation, RoundTrip
from tfm_core.inspect.practice.lesson import LessonKind
from tfm_core.plots.examples.errors import by_group, confusion
from tfm_core.plots.examples.own_data import balance
from tfm_core.plots.examples.pictures import picture_cards
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.training.curves import learning_curve
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run
from tfm_core.sentences import points
from tfm_core.training.progress import Patience

_WINDOW = 20
_SHOWN = 20
_TRIES = (1, 2, 5, 10, 20, 50, 100)
_CHOOSING = "choosing"
_MODEL_WIDTH, _DIFFERENCE_WIDTH, _DIGIT_WIDTH = 220, 110, 64  # pixels: all ten classes in view


def page() -> None:
    """Show one step at a time, with what is done; a link holds which."""
    show.header("practice")
    runs = steps.runs()
    name = steps.choose(runs)
    steps.why(name)
    {
        "split": _split,
        "train": _train,
        "early": _early,
        "augment": _augmentation,
        "errors": _errors,
        "save": _save,
        "test": _test,
    }[name](runs)
    steps.mistake(name)


def _split(runs: Runs) -> None:
    try:
        with st.spinner(_("Counting the pictures …")):
            counts, n_shared = _splits()
    except ValueError as error:
        show.problem(error)
        return
    left, right = st.columns([3, 2])
    with left:
        show.figure(
            balance({name: counts[name].tolist() for name in counts}, height=320),
            _("Pictures in two splits: {n}.", n=n_shared),
            key="practice-shares",
        )
    with right:
        # narrow columns: all of them fit a phone
        form = {_("pictures"): st.column_config.NumberColumn(format="localized")}
        st.dataframe(_roles(counts), hide_index=True, key="practice-roles", column_config=form)
        _width()
    question.ask(questions.about_choosing(), _CHOOSING)
    if question.is_revealed(_CHOOSING):
        steps.mark_done("split")
    show.code(conclusions.wilson)


def _roles(counts: pd.DataFrame) -> pd.DataFrame:
    totals = counts.sum(axis=1)
    return pd.DataFrame(
        [
            (_("training"), totals["train"], _("the weights"), _("in every step")),
            (_("validation"), totals["validation"], _("you"), _("every 50 steps")),
            (_("test"), totals["test"], _("nobody"), _("once")),
        ],
        columns=[_("split"), _("pictures"), _("who learns"), _("seen")],
    )


def _width() -> None:
    n = st.select_slider(
        _("Pictures in the validation split"),
        [20, 50, 100, 200, 500, 1000, 2000, 5000, 10000],
        500,
        key="practice-n",
        format_func=lambda value: f"{value:,}",
    )
    low, high = conclusions.wilson(round(0.9 * n), n)
    st.markdown(
        _(
            "90% right of {n} means **{low}** to **{high}**.",
            n=f"{n:,}",
            low=show.percent(low),
            high=show.percent(high),
        ),
        help=_("95% confidence (Wilson 1927)."),
    )
    question.check({"precision": questions.about_precision(n)}, of=f"{n}")


@st.cache_data(show_spinner=False)
def _splits() -> tuple[pd.DataFrame, int]:
    return lesson.splits_of(lesson.guided("plain"))


def _train(runs: Runs) -> None:
    """Train the guided run and mark where it begins to overfit."""
    steps.starter(["plain"], steps.TRAIN_GUIDED, runs)
    if "plain" in runs:
        steps.live(["plain"], runs, _one)


def _augmentation(runs: Runs) -> None:
    """Put the run without and the run with augmentation side by side, from one seed."""
    kinds: list[LessonKind] = ["plain", "augmented"]
    show.prose(paragraph("practice/augment", **lesson.AUGMENTATION))
    steps.starter(kinds, N_("Train with augmentation ({time})"), runs)
    if any(kind in runs for kind in kinds):
        steps.live(kinds, runs, _side_by_side)


def _curves_of(run: Run, column: str, *, name: str) -> None:
    curves = runs_access.curves(run)
    is_loss = column == "loss"
    figure = learning_curve(
        curves,
        column,
        total_steps=run.experiment.trained.steps,
        window=_WINDOW,
        is_patient=True,
    )
    if is_loss:
        figure.update_yaxes(range=[0, lesson.TOP_LOSS])
        _mark_turn(figure, curves)
    words = _("Loss; the ring marks the lowest validation loss.")
    if not is_loss:
        words = _("Accuracy. Does it turn with the loss?")
    show.figure(figure, words, key=f"practice-{name}-{column}")


def _loss_and_accuracy(run: Run, name: str) -> None:
    for place, column in zip(st.columns(2), ("loss", "accuracy"), strict=True):
        with place:
            _curves_of(run, column, name=name)


def _mark_turn(figure: go.Figure, curves: Curves) -> None:
    turn = lesson.overfitting(curves)
    if turn is None or not turn.has_begun:
        return
    figure.add_vrect(
        x0=turn.step,
        x1=turn.last_step,
        fillcolor="rgba(213,94,0,0.10)",
        line_width=0,
        annotation={"text": _("overfitting"), "font": {"size": 11}},
        annotation_position="top right",
    )


def _one(shown: Runs) -> None:
    run = shown["plain"]
    _loss_and_accuracy(run, "plain")
    turn = lesson.overfitting(runs_access.curves(run))
    if turn is None:
        st.caption(_("Waiting for the first measurement."))
    elif turn.has_begun:
        show.prose(
            paragraph(
                "practice/overfitting",
                step=f"{turn.step:,}",
                last=f"{turn.last_step:,}",
                a=turn.train_best,
                b=turn.train_last,
                c=turn.validation_best,
                d=turn.validation_last,
            )
        )
    else:
        st.caption(_("The validation loss still falls: no overfitting yet."))


def _side_by_side(shown: Runs) -> None:
    for column in ("loss", "accuracy"):
        for area, (kind, run) in zip(st.columns(len(shown)), shown.items(), strict=True):
            with area:
                _curves_of(run, column, name=kind)
    gaps, can_be_negative = [], False
    for kind, run in shown.items():
        turn = lesson.overfitting(runs_access.curves(run))
        if turn is not None:
            can_be_negative |= kind == "augmented" and turn.gap < 0
            gaps.append(
                _(
                    "{name}: training is **{gap:+.1f} points** ahead of validation.",
                    name=_(NAMES[kind]),
                    gap=100 * turn.gap,
                )
            )
    if gaps:
        st.markdown("  \n".join(gaps))
        words = _("Accuracy at the last step, in percentage points.")
        if can_be_negative:
            words += " " + _("Augmented pictures are harder, so the gap can be negative.")
        st.caption(words)


def _early(runs: Runs) -> None:
    show.prose(
        paragraph(
            "practice/patience",
            n=lesson.PATIENCE,
            steps=lesson.PATIENCE * lesson.guided("early").trained.validate_every,
        )
    )
    steps.starter(["early"], N_("Train with patience ({time})"), runs)
    if "early" in runs:
        steps.live(["early"], runs, _draw_early)
    show.code(Patience)


def _draw_early(shown: Runs) -> None:
    run = shown["early"]
    _loss_and_accuracy(run, "early")
    curves = runs_access.curves(run)
    best, status = curves.best_validation(), run.status
    if best is None or status.is_active:
        return
    saved = 1 - status.step / status.total_steps if status.total_steps else 0.0
    show.prose(
        paragraph(
            "practice/stopped",
            step=f"{status.step:,}",
            saved=show.percent(saved),
            best=f"{int(curves.unseen['step'][best]):,}",
            accuracy=show.percent(float(curves.unseen["accuracy"][best])),
            last=show.percent(float(curves.unseen["accuracy"][-1])),
        )
    )


def _errors(runs: Runs) -> None:
    picked = steps.chosen(runs)
    if picked is None:
        return
    try:
        evaluated = steps.evaluated(picked[1], "validation")
    except ValueError as error:
        show.problem(error)
        return
    left, right = st.columns(2)
    with left:
        show.figure(
            confusion(evaluated.confusion(), evaluated.class_names, state.theme()),
            _("Validation split: rows true, columns predicted."),
            key="practice-confusion",
        )
    of = f"{picked[1].id} {evaluated.step}"
    with right:
        if question.guess(questions.about_weakest(evaluated), "weakest", of=of):
            show.figure(
                by_group(
                    evaluated.by_class(),
                    _("class"),
                    orientation="v",
                    labels={"accuracy": _("pictures right")},
                    height=400,
                ),
                _("Accuracy per class, with 95% confidence."),
                key="practice-by-class",
            )
    if question.is_guessed("weakest", of=of):
        steps.mark_done("errors")
    _pictures(evaluated)
    show.code(Evaluation)


def _pictures(evaluated: Evaluation) -> None:
    indices = evaluated.wrong(_SHOWN)
    st.markdown(
        _(
            "**{n}** of {all} wrong, most confident first:",
            n=len(evaluated.labels) - evaluated.n_right,
            all=f"{len(evaluated.labels):,}",
        )
    )
    if len(indices):
        st.html(
            picture_cards(
                evaluated.images[indices],
                evaluated.labels[indices].tolist(),
                evaluated.probabilities[indices],
                evaluated.class_names,
            )
        )


def _save(runs: Runs) -> None:
    picked = steps.chosen(runs)
    if picked is None:
        return
    run = picked[1]
    pressed = st.button(
        _("Save, build a fresh model, load, compare"),
        type="primary",
        icon=":material/save:",
        key="practice-save",
    )
    if not pressed and not steps.is_marked("save"):
        return
    try:
        with st.spinner(_("Saving and loading …")):
            done = _round_trip(run.id, evaluation.weights_mark(run), run)
    except ValueError as error:
        show.problem(error)
        return
    steps.mark_done("save")
    _compare(done)
    _files(done, run)
    show.code(evaluation.save_weights)
    show.code(evaluation.load_weights)


def _compare(done: RoundTrip) -> None:
    names = {
        _("trained"): "trained",
        _("fresh, before loading"): "fresh",
        _("fresh, after loading"): "loaded",
        _("strict=False, wrong names"): "misnamed",
    }
    rows = []
    for label, name in names.items():
        logits = getattr(done, name)[0]
        rows.append(
            {
                _("model"): label,
                _("largest difference"): f"{done.difference(name):.6g}",
                **{str(digit): round(float(value), 3) for digit, value in enumerate(logits)},
            }
        )
    digits = [str(digit) for digit in range(done.trained.shape[1])]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="practice-logits",
        column_config={
            _("model"): st.column_config.TextColumn(width=_MODEL_WIDTH),
            _("largest difference"): st.column_config.TextColumn(width=_DIFFERENCE_WIDTH),
            **{digit: st.column_config.NumberColumn(width=_DIGIT_WIDTH) for digit in digits},
        },
    )
    if done.difference("loaded") == 0:
        st.success(
            _("The logits on all {n} pictures are **exactly** the same.", n=len(done.trained)),
            icon=":material/check_circle:",
        )
    st.caption(
        paragraph(
            "practice/differences", n=len(done.trained), ignored=done.n_ignored, all=done.n_tensors
        )
    )


def _files(done: RoundTrip, run: Run) -> None:
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            _("Weights ({size})", size=show.size(len(done.content))),
            done.content,
            file_name="weights.safetensors",
            mime="application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
            key="practice-weights",
        )
        st.download_button(
            _("Configuration"),
            to_json(run.experiment),
            file_name="experiment.json",
            mime="application/json",
            icon=":material/download:",
            on_click="ignore",
            key="practice-configuration",
        )


@st.cache_data(show_spinner=False, max_entries=8)
def _round_trip(run_id: str, mark: int, _run: Run) -> RoundTrip:
    return evaluation.round_trip(_run)


def _test(runs: Runs) -> None:
    picked = steps.chosen(runs)
    if picked is None:
        return
    if not steps.is_marked("test"):
        st.button(
            _("Open the test set"),
            type="primary",
            icon=":material/lock_open:",
            key="practice-open",
            on_click=steps.mark,
            args=("test",),
            help=_("After this, change nothing."),
        )
        return
    try:
        promised = steps.evaluated(picked[1], "validation")
        tested = steps.evaluated(picked[1], "test")
    except ValueError as error:
        show.problem(error)
        return
    names = _("validation"), _("test")
    shares = conclusions.shares_right(
        (name, evaluated.n_right, len(evaluated.labels))
        for name, evaluated in zip(names, (promised, tested), strict=True)
    )
    look = {
        "colour": [COLOURS["validation"], COLOURS["test"]],
        "symbol": ["circle", "star"],
        "size": 13,
    }
    figure = by_group(shares, "", look=look, labels={"accuracy": _("pictures right")}, height=222)
    show.figure(figure, _("Mark: measured; line: 95% confidence."), key="practice-promise")
    st.markdown(_verdict(_(NAMES[picked[0]]), promised, tested))
    _luck(tested)
    show.code(conclusions.best_of)


def _verdict(name: str, promised: Evaluation, tested: Evaluation) -> str:
    low, high = tested.interval
    words = paragraph(
        "practice/tested",
        name=name,
        promise=show.percent(promised.accuracy),
        truth=show.percent(tested.accuracy),
        low=show.percent(low),
        high=show.percent(high),
        n=f"{len(tested.labels):,}",
    )
    if promised.accuracy > high:
        verdict = _("Validation lies above the interval: too good to be true.")
    elif promised.accuracy < low:
        verdict = _("Validation lies below the interval: easier test pictures, by chance.")
    else:
        verdict = _("Validation lies within the interval: it was honest.")
    return f"{words} {verdict}"


def _luck(tested: Evaluation) -> None:
    tries = st.select_slider(
        _("Report the best of this many equal models"), _TRIES, 20, key="practice-tries"
    )
    n = len(tested.labels)
    expected = conclusions.best_of(tries, tested.accuracy, n)
    st.markdown(
        _(
            "You would report about **{best}** instead of {truth}: {gain:+.1f} points of luck.",
            best=show.percent(expected),
            truth=show.percent(tested.accuracy),
            gain=points(tested.accuracy, expected),
        ),
        help=_("Expected best of that many binomial draws."),
    )


page()
