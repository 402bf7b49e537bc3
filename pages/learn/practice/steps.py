"""The figures of good practice: from a split to a number on the test set, in seven steps."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

import pandas as pd
import streamlit as st

from pages.app import article, show, state
from pages.app.article import Made, keep
from pages.app.runs import comparison, runs_access
from pages.i18n import _, paragraph
from tfm_core import byte_cache
from tfm_core.choices.config import to_json
from tfm_core.inspect import conclusions
from tfm_core.inspect.answers import Answers
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.errors import GROUPINGS, validation_picture, worst_answers
from tfm_core.inspect.errors import confusion as confusion_table
from tfm_core.plots.examples import balance, by_group, confusion
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.png import picture_url
from tfm_core.plots.training.curves import learning_curve
from tfm_core.probe.types import Floats
from tfm_core.runs.outcome import overfit
from tfm_core.runs.run import Run
from tfm_core.sentences import points
from tfm_core.studies import practice
from tfm_core.studies.practice import STUDY
from tfm_core.studies.study import StudyRuns, missing
from tfm_core.training.progress import Patience

STEPS = ("split", "train", "early", "augment", "errors", "save", "test")
Runs = dict[str, Run]
"""The guided runs, by the name of their arm."""
_WINDOW = 20
_SHOWN, _CARD = 20, 114  # pictures, and pixels of each
_TRIES = (1, 2, 5, 10, 20, 50, 100)
_CHOOSING = "choosing"
_MODEL_WIDTH, _DIFFERENCE_WIDTH, _DIGIT_WIDTH = 220, 110, 64  # pixels: all ten classes in view
_BY_RUN = {"train": "plain", "early": "early", "augment": "augmented"}
"""The steps that are done once a run is."""
_DONE = "practice-done"


def _runs() -> Runs:
    """Return the guided runs that are there, by arm; those that a reader stopped, too."""
    return _by_arm(comparison.study_runs(STUDY, with_lessons=True))


def _by_arm(found: StudyRuns) -> Runs:
    every = {**found.stopped, **found.shown}
    return {arm.name: every[arm.name] for arm in STUDY.arms if arm.name in every}


def progress(_made: Made) -> None:
    """Show which steps are done."""
    runs = _runs()
    done = {name for name in STEPS if _is_marked(name)}
    if _is_own("plain", runs):
        done.add("split")
    for name, arm in _BY_RUN.items():
        if _is_own(arm, runs) and runs[arm].status.state == "finished":
            done.add(name)
    badges = " ".join(
        f":green-badge[✓ {number}]" if name in done else f":gray-badge[{number}]"
        for number, name in enumerate(STEPS, 1)
    )
    words = _("{n} of {all} done", n=len(done), all=len(STEPS))
    st.markdown(f"{badges} {words}")


def _is_own(arm: str, runs: Runs) -> bool:
    return arm in runs and not runs[arm].meta.recorded


def _mark(name: str) -> None:
    """Mark a step of this session as done; for a button's callback."""
    st.session_state.setdefault(_DONE, set()).add(name)


def _mark_done(name: str) -> None:
    if not _is_marked(name):
        _mark(name)
        st.rerun()


def _is_marked(name: str) -> bool:
    return name in st.session_state.get(_DONE, set())


def _guided(*arms: str, draw: Callable[[Runs], None]) -> None:
    """Offer to train arms, draw their runs, and show the state of the last one."""
    found = comparison.study_runs(STUDY, with_lessons=True)
    runs, untrained = _by_arm(found), missing(STUDY, found, own=True)
    offered = {name: untrained[name] for name in arms if name in untrained}
    comparison.start_button(STUDY, offered, key=f"practice-{arms[-1]}")
    shown = {name: runs[name] for name in arms if name in runs}
    last = {name: {0: run} for name, run in shown.items() if name == arms[-1]}

    def part(_was_live: bool) -> None:
        if last:
            with st.container(horizontal=True, gap="medium"):
                comparison.arm_lines(STUDY, StudyRuns(last))
        draw(shown)

    if shown:
        comparison.follow(shown.values(), part)


def _chosen(*, shows_why: bool = False) -> tuple[str, Run] | None:
    """Return the run that validation chooses, or show that a run is missing."""
    runs = _runs()
    ready = {
        name: (run, runs_access.curves(run))
        for name, run in runs.items()
        if run.status.state == "finished"
        and run.step_of_checkpoint(practice.counts(run)) is not None
    }
    best = practice.best_of(ready)
    if best is None:
        st.info(_("This step needs a finished run: train one first."))
        return None
    name, step, loss = best
    if shows_why:
        show.prose(
            paragraph(
                "practice/chosen",
                name=_(STUDY.arm(name).label),
                step=f"{step:,}",
                loss=f"{loss:.3f}",
                n=len(ready),
            )
        )
    return name, runs[name]


def _evaluated(run: Run, split: str) -> Answers:
    """Return the cached answers of a run on a split. Raises ValueError."""
    with st.spinner(_("Answering every picture …")):
        return _evaluate(run.folder, checkpoint_mark(run, practice.counts(run)), split)


@byte_cache.cached
def _evaluate(folder: Path, mark: int, split: str) -> Answers:
    return practice.evaluate(Run(folder), split)


def split(made: Made) -> None:
    """Count the pictures of each class in each split, and show how wide their intervals are."""
    with st.spinner(_("Counting the pictures …")):
        counts, n_shared = _splits()
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
        totals = counts.sum(axis=1)
        roles = [
            (_("training"), totals["train"], _("training"), _("in every step")),
            (_("validation"), totals["validation"], _("choosing"), _("every 50 steps")),
            (_("test"), totals["test"], _("the result"), _("once")),
        ]
        columns = [_("split"), _("pictures"), _("used for"), _("seen")]
        table = pd.DataFrame(roles, columns=columns)
        st.dataframe(table, hide_index=True, key="practice-roles", column_config=form)
        _width(made)
    keep(made, "", choosing=practice.about_choosing())
    if article.is_revealed(_CHOOSING):
        _mark_done("split")
    show.code(conclusions.wilson)


def _width(made: Made) -> None:
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
            "90% right on {n} pictures means a true accuracy of **{low}** to **{high}**.",
            n=f"{n:,}",
            low=show.percent(low),
            high=show.percent(high),
        ),
        help=_("95% confidence (Wilson 1927)."),
    )
    keep(made, n, precision=practice.about_precision(n))


@st.cache_data(show_spinner=False)
def _splits() -> tuple[pd.DataFrame, int]:
    return practice.splits_of(STUDY.base)


def train(_made: Made) -> None:
    """Train the guided run and mark where it begins to overfit."""
    _guided("plain", draw=_draw_plain)


def augment(_made: Made) -> None:
    """Put the run without and the run with augmentation side by side, from one seed."""
    show.prose(paragraph("practice/augment", **practice.AUGMENTATION))
    _guided("plain", "augmented", draw=_side_by_side)


def _curves_of(run: Run, column: str, *, name: str) -> None:
    """Draw the loss, with where it overfits, or the accuracy."""
    curves, caption = runs_access.curves(run), _("Accuracy. Does it turn with the loss?")
    steps = run.experiment.trained.steps
    figure = learning_curve(curves, column, total_steps=steps, window=_WINDOW, is_patient=True)
    if column == "loss":
        caption = _("Loss; the ring marks the lowest validation loss.")
        figure.update_yaxes(range=[0, practice.TOP_LOSS])
        turn = overfit(curves)
        if turn is not None:
            figure.add_vrect(
                x0=turn["step"],
                x1=int(curves.unseen["step"][-1]),
                fillcolor="rgba(213,94,0,0.10)",
                line_width=0,
                annotation={"text": _("overfitting"), "font": {"size": 11}},
                annotation_position="top right",
            )
    show.figure(figure, caption, key=f"practice-{name}-{column}")


def _loss_and_accuracy(run: Run, name: str) -> None:
    for place, column in zip(st.columns(2), ("loss", "accuracy"), strict=True):
        with place:
            _curves_of(run, column, name=name)


def _draw_plain(shown: Runs) -> None:
    run = shown["plain"]
    _loss_and_accuracy(run, "plain")
    curves = runs_access.curves(run)
    if (turn := overfit(curves)) is not None:
        last = int(curves.unseen["step"][-1])
        show.prose(paragraph("practice/overfitting", last=f"{last:,}", **turn))
    elif practice.gap(curves) is None:
        st.caption(_("Waiting for the first measurement."))
    else:
        st.caption(_("The validation loss still falls: no overfitting yet."))


def _side_by_side(shown: Runs) -> None:
    for column in ("loss", "accuracy"):
        for area, (kind, run) in zip(st.columns(len(shown)), shown.items(), strict=True):
            with area:
                _curves_of(run, column, name=f"beside-{kind}")
    gaps, can_be_negative = [], False
    for kind, run in shown.items():
        gap = practice.gap(runs_access.curves(run))
        if gap is not None:
            can_be_negative |= kind == "augmented" and gap < 0
            gaps.append(
                _(
                    "{name}: training is **{gap:+.1f} points** ahead of validation.",
                    name=_(STUDY.arm(kind).label),
                    gap=100 * gap,
                )
            )
    if gaps:
        st.markdown("  \n".join(gaps))
        caption = _("Accuracy at the last step, in percentage points.")
        if can_be_negative:
            caption += " " + _("Augmented pictures are harder, so the gap can be negative.")
        st.caption(caption)


def early(_made: Made) -> None:
    """Train until the validation loss has not fallen for a while."""
    show.prose(
        paragraph(
            "practice/patience",
            n=practice.PATIENCE,
            steps=practice.PATIENCE * STUDY.base.trained.validate_every,
        )
    )
    _guided("early", draw=_draw_early)
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


def errors(_made: Made) -> None:
    """Show which digits are taken for which, by the run that validation chooses."""
    picked = _chosen(shows_why=True)
    if picked is None:
        return
    evaluated = _evaluated(picked[1], "validation")
    counts, _wrong = confusion_table(evaluated)
    by_class = GROUPINGS["class"].groups(evaluated, picked[1].experiment)
    left, right = st.columns(2)
    with left:
        show.figure(
            confusion(counts.to_numpy(), evaluated.names, state.theme()),
            _("Validation split: rows true, columns predicted."),
            key="practice-confusion",
        )
    of = f"{picked[1].id} {evaluated.step}"
    with right:
        if article.guess(practice.about_weakest(by_class), "weakest", of=of):
            show.figure(
                by_group(
                    by_class,
                    _("class"),
                    orientation="v",
                    labels={"accuracy": _("pictures right")},
                    height=400,
                ),
                _("Accuracy per class, with 95% confidence."),
                key="practice-by-class",
            )
    if article.is_guessed("weakest", of=of):
        _mark_done("errors")
    worst = worst_answers(evaluated, "sure")
    st.markdown(
        _(
            "**{n}** of {all} wrong, most confident first:",
            n=len(worst),
            all=f"{len(evaluated.truth):,}",
        )
    )
    with st.container(horizontal=True, gap="small"):
        for place in worst[:_SHOWN].tolist():
            with st.container(width=_CARD, gap=None):
                _card(picked[1], evaluated, place)
    show.code(Answers)


def _card(run: Run, answers: Answers, place: int) -> None:
    picture = validation_picture(run, place)
    assert picture is not None
    truth, predicted = (
        answers.names[numbers[place]] for numbers in (answers.truth, answers.predicted)
    )
    words = _(
        "{truth}, not {predicted} · {confidence}",
        truth=truth,
        predicted=predicted,
        confidence=show.percent(float(answers.confidence[place])),
    )
    st.html(f'<img class="mistake" alt="{escape(words)}" src="{picture_url(picture)}">')
    st.caption(words)


def save(_made: Made) -> None:
    """Save the chosen run, load it into a fresh model, and compare the answers."""
    picked = _chosen()
    if picked is None:
        return
    run = picked[1]
    pressed = st.button(
        _("Save, build a fresh model, load, compare"),
        type="primary",
        icon=":material/save:",
        key="practice-save",
    )
    if not pressed and not _is_marked("save"):
        return
    with st.spinner(_("Saving and loading …")):
        done = _round_trip(run.id, checkpoint_mark(run, practice.counts(run)), run)
    _mark_done("save")
    content, n_tensors, n_ignored, logits = done
    _compare(logits)
    caption = paragraph(
        "practice/differences", n=len(logits["trained"]), ignored=n_ignored, all=n_tensors
    )
    st.caption(caption)
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            _("Weights ({size})", size=show.size(len(content))),
            content,
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
    show.code(practice.save_weights)
    show.code(practice.load_weights)


def _compare(logits: dict[str, Floats]) -> None:
    names = {
        "trained": _("trained"),
        "fresh": _("fresh, before loading"),
        "loaded": _("fresh, after loading"),
        "misnamed": _("strict=False, wrong names"),
    }
    differences = {name: abs(logits[name] - logits["trained"]).max() for name in names}
    rows = [
        {
            _("model"): label,
            _("largest difference"): f"{differences[name]:.6g}",
            **{str(digit): round(float(value), 3) for digit, value in enumerate(logits[name][0])},
        }
        for name, label in names.items()
    ]
    digits = map(str, range(logits["trained"].shape[1]))
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
    if differences["loaded"] == 0:
        n = len(logits["trained"])
        st.success(
            _("The logits on all {n} pictures are **exactly** the same.", n=n),
            icon=":material/check_circle:",
        )


@st.cache_data(show_spinner=False, max_entries=8)
def _round_trip(run_id: str, mark: int, _run: Run) -> tuple[bytes, int, int, dict[str, Floats]]:
    return practice.round_trip(_run)


def test(_made: Made) -> None:
    """Open the test set once, and compare its score with that of validation."""
    picked = _chosen()
    if picked is None:
        return
    if not _is_marked("test"):
        st.button(
            _("Open the test set"),
            type="primary",
            icon=":material/lock_open:",
            key="practice-open",
            on_click=_mark,
            args=("test",),
            help=_("After this, change nothing."),
        )
        return
    validated = _evaluated(picked[1], "validation")
    tested = _evaluated(picked[1], "test")
    names = _("validation"), _("test")
    shares = conclusions.shares_right(
        (name, evaluated.n_right, len(evaluated.truth))
        for name, evaluated in zip(names, (validated, tested), strict=True)
    )
    look = {
        "colour": [COLOURS["validation"], COLOURS["test"]],
        "symbol": ["circle", "star"],
        "size": 13,
    }
    figure = by_group(shares, "", look=look, labels={"accuracy": _("pictures right")}, height=222)
    show.figure(figure, _("Mark: measured; line: 95% confidence."), key="practice-promise")
    st.markdown(_verdict(_(STUDY.arm(picked[0]).label), validated, tested))
    _luck(tested)
    show.code(conclusions.expected_best)


def _verdict(name: str, validated: Answers, tested: Answers) -> str:
    low, high = conclusions.wilson(tested.n_right, len(tested.truth))
    result = paragraph(
        "practice/tested",
        name=name,
        promise=show.percent(validated.accuracy),
        truth=show.percent(tested.accuracy),
        low=show.percent(low),
        high=show.percent(high),
        n=f"{len(tested.truth):,}",
    )
    if validated.accuracy > high:
        verdict = _("Validation lies above the interval: too good to be true.")
    elif validated.accuracy < low:
        verdict = _("Validation lies below the interval: easier test pictures, by chance.")
    else:
        verdict = _("Validation lies within the interval: it was honest.")
    return f"{result} {verdict}"


def _luck(tested: Answers) -> None:
    tries = st.select_slider(
        _("Report the best of this many equal models"), _TRIES, 20, key="practice-tries"
    )
    n = len(tested.truth)
    expected = conclusions.expected_best(tries, tested.accuracy, n)
    st.markdown(
        _(
            "You would report about **{best}** instead of {truth}: {gain:+.1f} points of luck.",
            best=show.percent(expected),
            truth=show.percent(tested.accuracy),
            gain=points(tested.accuracy, expected),
        ),
        help=_("Expected best of that many binomial draws."),
    )
