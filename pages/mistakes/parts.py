"""Confusion matrix, groups, hardest tokens, calibration and corpus scores."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.components import live_figure as component
from pages.i18n import _, paragraph
from pages.mistakes import controls
from pages.mistakes.link import BY, SHOW, Cell
from pages.ui import show, state
from pages.ui.address import view_link
from tfm_core.config import OwnTextTaskConfig
from tfm_core.data.own.task import own_task
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.examples import hard_tokens
from tfm_core.inspect.errors.groups import groupings
from tfm_core.inspect.errors.scores import OTHERS, calibration, corpus_scores, n_short
from tfm_core.plots.examples import errors as plots
from tfm_core.plots.texts.writing import marked
from tfm_core.runs.run import Run

_HEIGHT, _ROW = 400, 22  # pixels: of the figure at least, and of a class
_SCORED = ("english-korean", "own-pairs", "captions")
"""The tasks whose texts are translations or descriptions, scored with BLEU and chrF."""
_OF_WORDS = ("words", "spaces")
"""The units of own data whose tokens are words, so that BLEU is meaningful."""
_MIN_COUNT = 5
"""Occurrences of a token from which on its mean loss is meaningful."""


def offered(run: Run, answers: Answers) -> tuple[str, ...]:
    fitting = {
        "tokens": answers.unit == "token",
        "scores": answers.written is not None and run.experiment.task.name in _SCORED,
    }
    return tuple(name for name in SHOW.names if fitting.get(name, True))


def groups(run: Run, answers: Answers) -> None:
    ways = groupings(answers, run.experiment)
    names = tuple(ways)
    by = view_link.choice(_("Grouped by"), replace(BY, names=names, first=names[0]))
    way = ways[by]
    counted = way.groups(answers, run.experiment)
    if counted.empty:
        st.caption(_("No example shows a known pattern."))
        return
    draw = plots.losses if answers.is_language else plots.accuracies
    words = [_("Bars: 95% confidence.")]
    if way.is_of_texts and answers.written is not None:
        words.append(_("A text counts if all of it is right, written alone."))
    if by == "pattern":
        words.append(_("An example may show several patterns."))
    if by == "frequency":
        words.append(_("Frequency: rank in training, 1 the most frequent."))
    if getattr(run.experiment.task.facts, "hides", False):
        words.append(_("Several answers may fit."))
    show.figure(draw(counted, _(way.label)), " ".join(words), key="mistakes-groups")


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
    accuracy = answers.n_right / len(answers.truth)
    values = {"confidence": show.percent(confidence), "right": show.percent(accuracy)}
    if confidence > accuracy + error / 2:
        words = _("Overconfident: {confidence} confident on average, {right} right.", **values)
    elif confidence < accuracy - error / 2:
        words = _("Underconfident: {confidence} confident on average, {right} right.", **values)
    else:
        words = _("Well calibrated: {confidence} confident on average, {right} right.", **values)
    expected = _(
        "Expected calibration error: **{error}** over {n} predictions.",
        error=show.percent(error),
        n=f"{len(answers.truth):,}",
    )
    st.markdown(f"{words} {expected}")
    show.figure(plots.reliability(bins), _("Numbers: answers per bin."), key="mistakes-calibration")


def scores(run: Run, answers: Answers) -> None:
    assert answers.written is not None
    task = run.experiment.task
    own = own_task(task) if isinstance(task, OwnTextTaskConfig) else None
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


def matrix(
    answers: Answers, counts: pd.DataFrame, wrong: pd.DataFrame, chosen: Cell | None
) -> None:
    numbers = counts.index.tolist()
    single = [number for number in numbers if number != OTHERS]
    is_shown = chosen is not None and set(chosen) <= set(numbers)
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
        on_pick=lambda row, column: controls.choose_cell((numbers[row], numbers[column])),
    )
    words = [_("Rows: true; columns: predicted. Press a cell for examples.")]
    if answers.unit == "token":
        words.append(_("Each token is predicted from the true prefix (teacher forcing)."))
    if OTHERS in numbers:
        words.append(
            _(
                "The {n} most confused of {all} classes; … means all others.",
                n=len(single),
                all=len(answers.names),
            )
        )
    st.caption(" ".join(words))
