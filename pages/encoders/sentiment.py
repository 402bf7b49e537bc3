"""Sentiment: a sentence, its label, and the words that decide."""

from __future__ import annotations

import streamlit as st

from pages.encoders import run as encoders_run
from pages.i18n import _, paragraph
from pages.ui import show, state, typed
from pages.ui.model import question
from pages.ui.typed import escape
from tfm_core.inspect.text import questions
from tfm_core.inspect.text import sentence as core
from tfm_core.inspect.text.sentence import SentenceReading
from tfm_core.plots.texts import reading as plots
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent

MAX_TEXT = 300
EXAMPLES = (
    "The food was not bad, but the service was slow.",
    "The film was very good.",
    "Never not friendly, although the room was dirty.",
    "The hotel was slightly bad and the view is great.",
)
_TEXT = "encoders-text"


def view() -> None:
    st.session_state.setdefault(_TEXT, EXAMPLES[0])
    encoders_run.show_with("sentiment", core.reads_labels, _draw)


def _draw(run: Run) -> None:
    text = encoders_run.sentence(
        _("Your sentence"), EXAMPLES, core.words_of(run), key=_TEXT, buttons="encoders-example"
    )
    try:
        sentence = core.read(run, typed.within(text, MAX_TEXT))
    except ValueError as error:
        show.problem(error)
        return
    _answer(sentence)
    _words(run, sentence)
    _pairs(run, sentence)


def _answer(sentence: SentenceReading) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        show.figure(
            plots.label_bars(sentence.labels, sentence.probabilities),
            _("The model's answer."),
            key="encoders-labels",
        )
    with right, st.container(border=True):
        st.markdown(_rule(sentence))


def _rule(sentence: SentenceReading) -> str:
    predicted = sentence.labels[sentence.predicted]
    if sentence.rule is None:
        return _(
            "The model says **{said}**; the rule has no answer for this sentence.", said=predicted
        )
    rule = sentence.rule
    mark = f":green-badge[:material/check: {_('agrees')}]"
    if rule.label != predicted:
        mark = f":orange-badge[:material/close: {_('differs')}]"
    deciding = " · ".join(escape(sentence.words[index]) for index in rule.decides)
    worths = [
        f"**{clause.worth:+d}**" if index in rule.counted else f"~~{clause.worth:+d}~~"
        for index, clause in enumerate(rule.clauses)
    ]
    return paragraph(
        "encoders/rule",
        label=rule.label,
        said=predicted,
        mark=mark,
        worths=", ".join(worths),
        worth=rule.worth,
        deciding=deciding,
    )


def _words(run: Run, sentence: SentenceReading) -> None:
    marked = sentence.rule.decides if sentence.rule is not None else ()
    shift = len(sentence.keys) - len(sentence.words)
    left, right = st.columns(2, gap="medium")
    with left:
        words = _("Attention of the mean of all words, by head. ▸: deciding words.")
        if shift:
            words = _("Attention of the CLS token, by head. ▸: deciding words.")
        show.figure(
            plots.head_rows(
                sentence.heads,
                sentence.keys,
                theme=state.theme(),
                marked=[index + shift for index in marked],
            ),
            words,
            key="encoders-heads",
        )
    with right:
        asked = questions.about_word(sentence)
        of = f"{run.id} {sentence.step} {sentence.words}"
        if asked is not None and not question.guess(asked, "word", of=of):
            return
        values = {
            "needed": sentence.needed,
            "relevance": sentence.relevance,
            "rollout": sentence.rollout,
        }
        show.figure(
            plots.word_bars(sentence.words, values, marked),
            _("Probability lost without each word; relevance; rollout."),
            key="encoders-words",
        )


def _pairs(run: Run, sentence: SentenceReading) -> None:
    pairs = core.minimal_pairs(sentence.words)
    if not pairs:
        return
    st.header(_("Minimal pairs"), anchor=False)
    changes = [_("as it is"), *map(_, pairs)]
    try:
        table = core.compared(run, (sentence.words, *pairs.values()))
    except ValueError as error:
        show.problem(error)
        return
    show.facts(
        [
            (change, words, rule, f"{model} {agrees} {whole_percent(sure)}")
            for change, (words, rule, model, agrees, sure) in zip(
                changes, table.itertuples(index=False), strict=True
            )
        ],
        [_("Change"), _("Sentence"), _("Rule"), _("Model, how sure")],
    )
    st.caption(_("Counting good and bad words cannot tell these apart."))
