"""What else is asked of the answers: by group, token by token, how sure, and as a whole."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.mistakes.link import BY, SHOW
from pages.ui import show, view_link
from tfm_core.config import OwnTextTaskConfig
from tfm_core.data.own.task import own_task
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.examples import hard_tokens
from tfm_core.inspect.errors.groups import groupings
from tfm_core.inspect.errors.scores import calibration, corpus_scores
from tfm_core.plots import errors as plots
from tfm_core.plots.writing import marked
from tfm_core.runs.run import Run

_SCORED = ("english-korean", "own-pairs", "captions")
"""The tasks whose texts are translations or descriptions, which are scored as a whole."""
_OF_WORDS = ("words", "spaces")
"""The units of own data whose tokens are words, so that BLEU says something."""
_OFTEN = 5
"""Times that a token is meant before its mean loss says something."""


def offered(run: Run, found: Answers) -> tuple[str, ...]:
    """Return which parts fit the answers."""
    fitting = {
        "tokens": found.unit == "token",
        "scores": found.written is not None and run.experiment.task.name in _SCORED,
    }
    return tuple(name for name in SHOW.names if fitting.get(name, True))


def groups(run: Run, found: Answers) -> None:
    """Show the share right by group, or of a language model the loss."""
    ways = groupings(found, run.experiment)
    names = tuple(ways)
    by = view_link.choice(_("Grouped by"), replace(BY, names=names, first=names[0]))
    way = ways[by]
    counted = way.groups(found, run.experiment)
    if not counted:
        st.caption(_("No example shows a known pattern."))
        return
    draw = plots.losses if found.is_language else plots.accuracies
    words = _("Bars hold the true share with 95 % confidence.")
    if found.is_language:
        words = _("Bars hold the true mean with 95 % confidence.")
    if way.is_of_texts and found.written is not None:
        words += " " + _("A text counts if the model, writing alone, gets all of it right.")
    elif found.unit == "token":
        words += " " + _("Tokens count one by one, after the true beginning.")
    if by == "pattern":
        words += " " + _("An example may show several patterns.")
    if by == "frequency":
        words += " " + _("Frequency is the rank in training, 1 the most frequent.")
    if getattr(run.experiment.task.facts, "hides", False):
        words += " " + _("Several answers may fit: not even a perfect reader is always right.")
    show.figure(draw(counted, _(way.label)), words, key="mistakes-groups")


def tokens(run: Run, found: Answers) -> None:
    """Show the tokens with the highest mean loss, of those that are meant often enough."""
    least = _OFTEN if hard_tokens(found, least=_OFTEN) else 1
    rows = [
        {
            _("token"): marked(found.names[one.number]),
            _("loss"): one.loss,
            _("share of all loss"): 100 * one.share,
            _("meant"): one.n,
            _("in training"): one.train_count,
            _("said instead"): "" if one.instead is None else marked(found.names[one.instead]),
        }
        for one in hard_tokens(found, least=least)
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height=372,
        column_config={
            _("loss"): st.column_config.NumberColumn(format="%.3f"),
            _("share of all loss"): st.column_config.NumberColumn(format="%.1f %%"),
        },
    )
    st.caption(
        _(
            "Mean loss in nats after the true beginning, of tokens that are meant {n} times or "
            "more; how often each is meant, here and in training.",
            n=least,
        )
    )


def how_sure(run: Run, found: Answers) -> None:
    """Show the reliability diagram."""
    measured = calibration(found.confidence, found.is_right)
    sure, right = show.percent(measured.confidence), show.percent(measured.accuracy)
    words = _("As sure as it is right: {sure} in the mean, {right} right.")
    if measured.confidence > measured.accuracy + measured.error / 2:
        words = _("Too sure of itself: {sure} in the mean, but only {right} right.")
    elif measured.confidence < measured.accuracy - measured.error / 2:
        words = _("Less sure than it is right: {sure} in the mean, {right} right.")
    what = {
        "picture": _("pictures"),
        "label": _("sentences"),
        "token": _("tokens after the true beginning"),
    }
    st.markdown(
        _(
            "Expected calibration error **{error}** over {n} {what}. {words}",
            error=show.percent(measured.error),
            n=f"{len(found.truth):,}",
            what=what[found.unit],
            words=words.format(sure=sure, right=right),
        )
    )
    show.figure(
        plots.reliability(measured),
        _("Ten bins of equal width; the number in each is how many answers it holds."),
        key="mistakes-calibration",
    )


def scores(run: Run, found: Answers) -> None:
    """Show BLEU and chrF of all texts together."""
    assert found.written is not None
    task = run.experiment.task
    own = own_task(task) if isinstance(task, OwnTextTaskConfig) else None
    are_words = own is None or own.cutters[1].unit in _OF_WORDS
    join = " ".join if own is None or are_words else own.join_tgt
    scored = corpus_scores(
        [join(one.tokens) for one in found.written],
        [join(item["tgt"]) for item in found.items],
        are_words=are_words,
    )
    named = [("BLEU", scored.bleu), ("chrF", scored.chrf)]
    shown = [(name, score) for name, score in named if score is not None]
    with st.container(horizontal=True, gap="large"):
        for name, score in shown:
            st.metric(
                name,
                f"{score.value:.1f}",
                help=_("sacrebleu’s signature: `{signature}`", signature=score.signature),
                width="content",
            )
    n = f"{found.n_examples:,}"
    about = _("Over all {n} validation texts together, written greedily, with one truth each.")
    if scored.bleu is not None:
        more = _(
            "The tokens are this task’s own words, separated by spaces and not cut again (tokenize "
            "none), so these scores compare runs of this task with each other, never with "
            "published ones."
        )
    elif not are_words:
        more = _(
            "No BLEU: it counts runs of words, and this task’s tokens are characters or pieces of "
            "words. chrF counts runs of letters."
        )
    else:
        more = _(
            "No BLEU: it counts runs of four words, and {short} of these texts have fewer. chrF "
            "counts runs of letters.",
            short=f"{scored.n_short:,}",
        )
    st.caption(f"{about.format(n=n)} {more}")
    st.markdown("  \n".join(f"`{name} {score.signature}`" for name, score in shown))
