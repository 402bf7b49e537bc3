"""Where it fails: confusion matrix, worst errors, groups and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from html import escape as html
from typing import Any

import pandas as pd
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.navigation import head, page_table
from pages.app.runs import runs_access
from pages.app.runs.shown_run import MODELS
from pages.app.typed import escape
from pages.components import live_figure as component
from pages.i18n import N_, _, paragraph
from tfm_core.background import Asked
from tfm_core.choices.config import OwnTextTaskConfig
from tfm_core.data.user_data.task import user_task
from tfm_core.inspect import errors as core
from tfm_core.inspect.answers import EVALUATIONS, Answers, Evaluation, evaluate
from tfm_core.inspect.attention.trained import steps_of
from tfm_core.inspect.conclusions import wilson
from tfm_core.inspect.errors import (
    GROUPINGS,
    OTHERS,
    answers_in_cell,
    by_example,
    calibration,
    confusion,
    corpus_scores,
    groupings,
    hard_tokens,
    least_confident,
    n_like_training,
    n_short,
    worst_answers,
    worst_texts,
)
from tfm_core.plots import examples as plots
from tfm_core.plots.png import picture_url
from tfm_core.plots.writing import marked
from tfm_core.runs.run import Run

SCOPE = "mistakes"
AT_ONCE = 0.9
"""Seconds that the page waits for the answers before it shows the progress."""
_TICK = 0.4
_REQUESTED = "mistakes-requested"
_HEIGHT, _ROW = 400, 22  # pixels: of the matrix at least, and of a class
_SCORED = ("english-korean", "own-pairs", "captions")
"""The tasks whose texts are translations or descriptions, scored with BLEU and chrF."""
_OF_WORDS = ("words", "spaces")
"""The units of own data whose tokens are words, so that BLEU is meaningful."""
_MIN_COUNT = 5
"""Occurrences of a token from which on its mean loss is meaningful."""
_MAX_PICTURES = 24
_MAX_TEXTS = 20
_CARD, _GALLERY = 114, 372  # pixels: the width of a card with a picture, the height of all
_CLASS = "(-1|[0-9]{1,6})"  # the number of a class or token in a link
_COLLAPSED = {"label_visibility": "collapsed"}
PARTS = {
    "worst": N_("Worst first"),
    "groups": N_("By group"),
    "tokens": N_("Hardest tokens"),
    "calibration": N_("Calibration"),
    "scores": N_("BLEU and chrF"),
}
NEEDS = replace(MODELS, first="recorded-digits")


def _part(names: Sequence[str]) -> Any:
    labels = {name: PARTS[name] for name in names}
    return view.choice(N_("What is shown"), labels, look=_COLLAPSED)


def _way(names: Sequence[str]) -> Any:
    labels = {name: GROUPINGS[name].label for name in names}
    return view.choice(N_("Grouped by"), labels, when=lambda asked: asked.show == "groups")


Cell = tuple[int, int]


def _cell(run_id: str = "") -> Any:
    """Keep the pressed cell of the matrix, true and predicted class; -1 means all others."""
    return view.written(
        f"{_CLASS},{_CLASS}",
        N_("the numbers of two classes, such as 4,9"),
        lambda true, predicted: (int(true), int(predicted)),
        lambda cell: f"{cell[0]},{cell[1]}",
        holds_for=run_id,
    )


@dataclass(frozen=True)
class Mistakes:
    """What is shown beside the matrix."""

    cell: tuple[int, int] | None = _cell()
    show: str = _part(tuple(PARTS))
    order: str = view.choice(
        N_("Order"),
        {"loss": N_("Highest loss"), "sure": N_("Most confident")},
        when=lambda asked: asked.show == "worst",
        look=_COLLAPSED,
    )
    by: str = _way(tuple(GROUPINGS))


def page() -> None:
    """Judge the run of the head on its validation set."""
    show.header("mistakes")
    run = head.run(NEEDS)
    if run is None:
        return
    try:
        steps = steps_of(run)
        step = head.step(steps)
        answers = answers_at(run, step)
    except ValueError as error:
        show.problem(error)
        return
    if answers is None:
        st.markdown(measured_then(run, step))
        return
    _draw(run, answers)
    if step != steps[-1] and not EVALUATIONS.n_waiting:  # the steps beside it come meanwhile
        at = steps.index(step)
        with suppress(ValueError):  # weights that were deleted meanwhile
            for near in steps[max(at - 1, 0) : at + 2]:
                evaluate(run, near)


def answers_at(run: Run, step: int) -> Answers | None:
    """Return the answers of a step's weights; None while they are computed: a bar shows it.

    Raises ValueError, in a sentence, without such weights or data.
    """
    before: Asked[Evaluation] | None
    wanted, (asked, before) = (run.id, step), st.session_state.pop(_REQUESTED, (None, None))
    if before is not None and asked == wanted and before.future.done():
        evaluation = before  # a failed one too: restarted, it would fail again
    else:
        evaluation = evaluate(run, step)
        if before is not None and before is not evaluation:
            before.future.cancel()  # the visitor has gone on
    try:
        evaluated: Answers = evaluation.future.result(timeout=AT_ONCE)
    except TimeoutError:
        st.session_state[_REQUESTED] = (wanted, evaluation)
        st.fragment(_progress, run_every=_TICK)(evaluation, step)
        return None
    except CancelledError:  # by another session of this visitor
        state.rerun()
    return evaluated


def _progress(evaluation: Asked[Evaluation], step: int) -> None:
    if evaluation.future.done():
        state.rerun()
    message = _("The weights of step {step} answer the validation set …", step=f"{step:,}")
    st.progress(evaluation.work.share, message)


def _draw(run: Run, answers: Answers) -> None:
    counts, wrong = confusion(answers)
    ways = groupings(answers, run.experiment)
    fitting = {
        "tokens": answers.unit == "token",
        "scores": answers.written is not None and run.experiment.task.name in _SCORED,
    }
    parts = [name for name in PARTS if fitting.get(name, True)]
    left, right = st.columns([5, 6], gap="medium")
    with right:
        above = st.container(horizontal=True, gap="small")
        places = {"show": above, "order": above}
        changed = {"cell": _cell(run.id), "show": _part(parts), "by": _way(tuple(ways))}
        asked = view.ask(Mistakes, SCOPE, places=places, **changed)
    with left:
        matrix(answers, counts, wrong, asked.cell)
        st.markdown(summary(run, answers))
    with right:
        if asked.show == "worst":
            gallery(run, answers, counts.index.tolist(), asked.cell, asked.order)
        elif asked.show == "groups":
            groups(run, answers, asked.by)
        else:
            drawn = {"tokens": tokens, "calibration": calibrated, "scores": scores}
            drawn[asked.show](run, answers)


def matrix(
    answers: Answers, counts: pd.DataFrame, wrong: pd.DataFrame, chosen: Cell | None
) -> None:
    numbers = counts.index.tolist()
    single = [number for number in numbers if number != OTHERS]
    is_shown = chosen is not None and set(chosen) <= set(numbers)

    def pick(row: int, column: int) -> None:
        """Choose a cell; choosing it again clears it."""
        cell = (numbers[row], numbers[column])
        view.put(SCOPE, cell=None if cell == chosen else cell)

    figure = plots.confusion(
        counts.to_numpy(),
        ["…" if number == OTHERS else answers.names[number] for number in numbers],
        state.theme(),
        wrong=wrong.to_numpy(),
        top=int(wrong.loc[single, single].to_numpy().max(initial=0)),
        chosen=(numbers.index(chosen[0]), numbers.index(chosen[1]))
        if chosen is not None and is_shown
        else None,
        height=max(_HEIGHT, _ROW * len(numbers)),
    )
    component.live_figure(
        figure,
        key="mistakes-matrix",
        name=_("Predicted for each true class; press a cell for its examples"),
        on_pick=pick,
    )
    message = [_("Rows are true classes, columns are predicted. Press a cell for examples.")]
    if answers.unit == "token":
        message.append(_("Each token is predicted from the true prefix (teacher forcing)."))
    if OTHERS in numbers:
        message.append(
            _(
                "The {n} most confused of {all} classes; … means all others.",
                n=len(single),
                all=len(answers.names),
            )
        )
    st.caption(" ".join(message))


def summary(run: Run, answers: Answers) -> str:
    counts = _language(answers) if answers.is_language else _counted(answers)
    if run.experiment.training is None:
        data = paragraph("mistakes/opened")
    elif answers.n_examples < answers.n_all:
        data = _(
            "The first {n} of {all} validation examples. The test set is not used.",
            n=f"{answers.n_examples:,}",
            all=f"{answers.n_all:,}",
        )
    else:
        data = _("The test set is not used.")
    message = f"{counts} {data}"
    alike = n_like_training(run, answers)
    return f"{message} {paragraph('mistakes/alike', n=f'{alike:,}')}" if alike else message


def measured_then(run: Run, step: int) -> str:
    """Return the validation score measured in training, at or before a step."""
    curve = runs_access.curves(run).validation
    is_past = curve["step"] <= step
    if not is_past.any():
        return ""
    return _(
        "At step {at} of the training, {share} of the answers were right.",
        share=show.percent(float(curve["accuracy"][is_past][-1])),
        at=f"{int(curve['step'][is_past][-1]):,}",
    )


def _counted(answers: Answers) -> str:
    is_right, _loss = by_example(answers)
    n, wrong = len(is_right), int((~is_right).sum())
    low, high = wilson(n - wrong, n)
    message = paragraph(
        "mistakes/wrong",
        n=f"{n:,}",
        wrong=f"{wrong:,}",
        share=show.percent((n - wrong) / n),
        low=show.percent(low),
        high=show.percent(high),
    )
    if answers.unit != "token":
        return message
    tokens, total = show.percent(answers.accuracy), f"{len(answers.truth):,}"
    forced = _(
        "With teacher forcing, {tokens} of {all} tokens are right.", tokens=tokens, all=total
    )
    return f"{message} {forced}"


def _language(answers: Answers) -> str:
    n = len(answers.truth)
    low, high = wilson(answers.n_right, n)
    return paragraph(
        "mistakes/language",
        loss=f"{float(answers.loss.mean(dtype=float)):.3f}",
        n=f"{n:,}",
        share=show.percent(answers.accuracy),
        low=show.percent(low),
        high=show.percent(high),
    )


def gallery(
    run: Run, answers: Answers, numbers: Sequence[int], cell: Cell | None, order: str
) -> None:
    """Draw the worst errors, or those of a cell. numbers: of the classes that are shown."""
    chosen = None if cell is None else answers_in_cell(answers, numbers, cell)
    is_text = answers.written is not None
    worst = worst_texts if is_text else worst_answers
    places = worst(answers, "sure" if order == "sure" else "loss", chosen)
    if cell is not None:
        _only(answers, cell, 0 if chosen is None else len(chosen))
    is_picture = core.validation_picture(run, 0) is not None
    most = _MAX_PICTURES if is_picture and not is_text else _MAX_TEXTS
    all_right = cell is None and not len(places)
    if all_right:
        places = least_confident(answers, most)
    st.caption(_how_many(answers, len(places), most, cell, order, all_right=all_right))
    shown = places[:most].tolist()
    with st.container(height=_GALLERY, border=False, key="mistakes-gallery"):
        if answers.is_language:
            _surprises(run, answers, shown)
        elif is_text:
            _texts(run, answers, shown)
        elif answers.unit == "label":
            for place in shown:
                example = int(answers.example[place])
                with st.container(border=True, gap=None, key=f"mistake-card-{example}"):
                    st.markdown(escape(core.source_text(run, answers, example)))
                    _link(run, example, _single(answers, place))
        else:
            _pictures(run, answers, shown)


def _how_many(
    answers: Answers, n: int, most: int, cell: Cell | None, order: str, *, all_right: bool
) -> str:
    if all_right:
        return _("No mistakes; the {n} least confident answers.", n=min(n, most))
    values = {"n": min(n, most), "all": f"{n:,}"}
    if cell is None and answers.is_language:
        if order == "sure":
            return _("The {n} most confident of {all} wrong tokens.", **values)
        return _("The {n} of {all} tokens with the highest loss.", **values)
    if n > most:
        return _("The worst {n} of {all}.", **values)
    if n == 1:
        return _("The only one.")
    return _("All {n} of them.", n=f"{n:,}") if n else ""


def _only(answers: Answers, cell: Cell, n: int) -> None:
    truth, predicted = (
        _("others") if number == OTHERS else _name(answers, number) for number in cell
    )
    values = {"truth": truth, "predicted": predicted, "n": f"{n:,}"}
    is_right, is_text = cell[0] == cell[1] != OTHERS, answers.written is not None
    if is_text and is_right:
        message = _("**{truth}**, right: {n} tokens", **values)
    elif is_text:
        message = _("**{truth}** taken for **{predicted}**: {n} tokens", **values)
    elif is_right:
        message = _("**{truth}**, right: {n}", **values)
    else:
        message = _("**{truth}** taken for **{predicted}**: {n}", **values)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(message, width="content")
        st.button(
            _("All errors"),
            icon=":material/filter_alt_off:",
            key="mistakes-all",
            on_click=partial(view.put, SCOPE, cell=None),
        )


def _name(answers: Answers, number: int) -> str:
    is_named = 0 <= number < len(answers.names)
    return escape(marked(answers.names[number])) if is_named else str(number)


def _pictures(run: Run, answers: Answers, places: Sequence[int]) -> None:
    with st.container(horizontal=True, gap="small"):
        for place in places:
            example = int(answers.example[place])
            with st.container(width=_CARD, gap=None, key=f"mistake-card-{example}"):
                _picture(run, example)
                _link(run, example, _single(answers, place))


def _single(answers: Answers, place: int) -> str:
    values = {
        "truth": f"**{_name(answers, int(answers.truth[place]))}**",
        "predicted": _name(answers, int(answers.predicted[place])),
        "confidence": show.percent(float(answers.confidence[place])),
    }
    if answers.truth[place] == answers.predicted[place]:
        return _("{truth}, right · {confidence}", **values)
    return _("{truth}, not {predicted} · {confidence}", **values)


def _picture(run: Run, example: int) -> None:
    picture = core.validation_picture(run, example)
    if picture is not None:
        name = html(_("Validation picture {n}", n=example + 1))
        st.html(f'<img class="mistake" alt="{name}" src="{picture_url(picture)}">')


def _texts(run: Run, answers: Answers, places: Sequence[int]) -> None:
    assert answers.written is not None
    _is_right, losses = by_example(answers)
    for example in places:
        written, difference = answers.written[example], core.first_difference(answers, example)
        with st.container(border=True, gap=None, key=f"mistake-card-{example}"):
            if source := written.item.get("src_text", ""):
                st.markdown(escape(source))
            else:
                _picture(run, example)
            if difference is None:
                confidence = show.percent(written.confidence)
                words = _("Right; lowest token confidence {confidence}", confidence=confidence)
            else:
                at, predicted, true = difference
                st.markdown(f":orange[✗ {escape(written.predicted) or '–'}]")
                words = _(
                    "Token {at}: {predicted}, not {true} · {loss} nats a token",
                    at=at + 1,
                    predicted=escape(predicted) or "<eos>",
                    true=escape(true) or "<eos>",
                    loss=f"{losses[example]:.2f}",
                )
            st.markdown(f":green[✓ {escape(written.truth)}]")
            _link(run, example, words)


def _surprises(run: Run, answers: Answers, places: Sequence[int]) -> None:
    for place in places:
        before, text = core.surprise_context(run, answers, place)
        with st.container(border=True, gap=None, key=f"mistake-card-{place}"):
            token = _name(answers, int(answers.truth[place]))
            st.markdown(f"{escape(before)} **:orange[{token}]**")
            words = _(
                "{loss} nats; predicted {predicted} with {confidence}",
                loss=f"{float(answers.loss[place]):.2f}",
                predicted=_name(answers, int(answers.predicted[place])),
                confidence=show.percent(float(answers.confidence[place])),
            )
            _to_attention(run, words, {"text": text})


def _link(run: Run, example: int, label: str) -> None:
    _to_attention(run, label, {"own": f"validation-{example + 1}"})


def _to_attention(run: Run, label: str, query: dict[str, str]) -> None:
    st.page_link(
        page_table.path_of("attention"),
        label=label,
        query_params={"run": run.id, "example": "own", **query},
    )


def groups(run: Run, answers: Answers, by: str) -> None:
    way = groupings(answers, run.experiment)[by]
    counted = way.groups(answers, run.experiment)
    if counted.empty:
        st.caption(_("No example shows a known pattern."))
        return
    message = [_("Bars are 95% intervals.")]
    if way.is_of_texts and answers.written is not None:
        message.append(_("A text counts if the model writes all of it correctly on its own."))
    if by == "pattern":
        message.append(_("An example may show several patterns."))
    if by == "frequency":
        message.append(_("Frequency is the rank in training; 1 is the most frequent."))
    if getattr(run.experiment.task.facts, "hides", False):
        message.append(_("Several answers may fit."))
    of = "loss" if answers.is_language else "accuracy"
    figure = plots.by_group(counted, _(way.label), of)
    show.figure(figure, " ".join(message), key="mistakes-groups")


def tokens(run: Run, answers: Answers) -> None:
    """Show the tokens with the highest mean loss among those that occur often enough."""
    least = 1 if hard_tokens(answers, least=_MIN_COUNT).empty else _MIN_COUNT
    hard, names = hard_tokens(answers, least=least), [marked(name) for name in answers.names]
    columns = {
        _("token"): [names[number] for number in hard.index],
        _("loss"): hard["loss"],
        _("share of all loss"): 100 * hard["share"],
        _("true"): hard["n"],
        _("in training"): hard["train_count"],
        _("predicted instead"): [names[at] if at >= 0 else "" for at in hard["instead"]],
    }
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        height=372,
        column_config={
            _("loss"): st.column_config.NumberColumn(format="%.3f"),
            _("share of all loss"): st.column_config.NumberColumn(format="%.1f%%"),
        },
    )
    st.caption(paragraph("mistakes/word-loss", n=least))


def calibrated(run: Run, answers: Answers) -> None:
    bins, error = calibration(answers.confidence, answers.is_right)
    confidence = float(answers.confidence.mean(dtype=float))
    accuracy = answers.accuracy
    values = {"confidence": show.percent(confidence), "right": show.percent(accuracy)}
    if confidence > accuracy + error / 2:
        message = _("Overconfident: {confidence} confident on average, {right} right.", **values)
    elif confidence < accuracy - error / 2:
        message = _("Underconfident: {confidence} confident on average, {right} right.", **values)
    else:
        message = _("Well calibrated: {confidence} confident on average, {right} right.", **values)
    expected = _(
        "Expected calibration error: **{error}** over {n} predictions.",
        error=show.percent(error),
        n=f"{len(answers.truth):,}",
    )
    st.markdown(f"{message} {expected}")
    show.figure(
        plots.reliability(bins), _("Numbers are answers per bin."), key="mistakes-calibration"
    )


def scores(run: Run, answers: Answers) -> None:
    assert answers.written is not None
    task = run.experiment.task
    own = user_task(task) if isinstance(task, OwnTextTaskConfig) else None
    are_words = own is None or own.cutters[1].unit in _OF_WORDS
    join = " ".join if own is None or are_words else own.join_tgt
    predicted = [join(text.tokens) for text in answers.written]
    truth = [join(item["tgt"]) for item in answers.items]
    scored = corpus_scores(predicted, truth, are_words=are_words)
    with st.container(horizontal=True, gap="large"):
        for name, (score, _signature) in scored.items():
            st.metric(name, f"{score:.1f}", width="content")
    kind = "words" if "BLEU" in scored else "short" if are_words else "pieces"
    n, short = f"{answers.n_examples:,}", f"{n_short(truth):,}"
    st.caption(paragraph(f"mistakes/scores-{kind}", n=n, short=short))
    signatures = (f"`{name} {signature}`" for name, (_score, signature) in scored.items())
    st.caption("  \n".join(signatures))


if __name__ == "__main__":
    page()
