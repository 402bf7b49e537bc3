"""Models that read: surprise, each layer's answer, sums, sentiment and hidden words."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import article, show, typed
from pages.app.address import view
from pages.app.model import your_input
from pages.app.runs import run_actions, run_time
from pages.app.runs.shown_run import Needs
from pages.app.settings import controls
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext, paragraph
from pages.try_it import answer
from tfm_core.choices.config import CorpusTaskConfig, Experiment, TextTaskConfig
from tfm_core.choices.config.corpus_tasks import text_problem
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.tasks import UNITS
from tfm_core.data.tasks import text_task
from tfm_core.data.text.corpus import read_text
from tfm_core.data.user_data.tokens import learn_from_text
from tfm_core.inspect.attention import trained
from tfm_core.inspect.conclusions import settling_depths
from tfm_core.inspect.text.language_model import (
    BITS,
    about_order,
    answer_sum,
    example_text,
    lens_logits,
    read_with_lens,
    surprisals,
)
from tfm_core.inspect.text.sentence import (
    Blank,
    SentenceReading,
    about_gap,
    about_word,
    blank_tokens,
    blank_words,
    chances,
    compare_with_rule,
    explanations,
    fill_blanks,
    fills_blanks,
    hide_words,
    minimal_pairs,
    read_sentence,
    reads_labels,
    words_of,
)
from tfm_core.plots import writing as plots
from tfm_core.plots.chart import chart
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, VERMILION
from tfm_core.plots.writing import head_rows, surprise_text, with_signs
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent

LANGUAGE = Needs(
    N_("a language model"),
    lambda experiment: experiment.task.facts.answer == "text",
    first="recorded-grammar",
    presets=("gpt-grammar", "gpt-text"),
)
ADDITION = Needs(
    N_("a GPT that adds"),
    lambda experiment: (
        experiment.model.family == "decoder-only" and experiment.task.name == "addition"
    ),
    first="recorded-addition",
    presets=("addition-3", "addition"),
)
LABELS = Needs(
    N_("a model of sentiment"),
    reads_labels,
    first="recorded-sentiment",
    presets=("sentiment",),
)
BLANKS = Needs(
    N_("a model that guesses hidden words"),
    fills_blanks,
    first="recorded-masked-words",
    presets=("masked-words",),
)
MAX_READ, MAX_TEXT, MAX_LOOKED, MAX_SUM = 6000, 400, 200, 40  # characters
MAX_SENTENCE, MAX_GAPPED = 300, 200
MAX_SHOWN = 24  # columns with readable tokens
SENTENCES = (
    "The food was not bad, but the service was slow.",
    "The film was very good.",
    "Never not friendly, although the room was dirty.",
    "The hotel was slightly bad and the view is great.",
)
N_WORDS = 8
GAP = "___"
GAPPED = (
    "Yesterday the hungry dog ___ a carrot in the garden.",
    "The teacher ___ the cake.",
    "___ friend comes to the big market daily.",
    "A white ___ sees ___ apple.",
)
_SPANS = "span-corruption"
_SEED = 8
"""Gives a sentence with two hidden spans."""


def read(run: Run) -> None:
    """Colour a text by how much each token surprises the model."""
    field = view.text(
        N_("Text"), example_text(run), MAX_TEXT, is_long=True, look={"height": 68}, holds_for=run.id
    )
    text = view.one(field, "text", "read")
    reading = surprisals(run, typed.check_length(text, MAX_READ))
    your_input.mark_unknown(text_task(run.experiment.task), text)
    unit = run.experiment.task_as(CorpusTaskConfig).unit
    tokens, nats = reading["token"].tolist(), reading["nats"].to_numpy()
    box = st.container(border=True)
    field = view.number(
        N_("Token"),
        1,
        len(reading),
        int(nats.argmax()) + 1,
        help=N_("Framed in the text; at first the most surprising."),
        query="at",
        holds_for=f"{run.id} {text}",
    )
    picked = view.one(field, "token", "read") - 1
    with box:
        st.html(surprise_text(tokens, nats, picked, UNITS[unit].separator, say=_))
    _guesses(reading, picked)
    _figures(reading, unit)
    task = text_task(run.experiment.task)
    forwards = [token for token in tokens if token != run.experiment.task.end]
    if len(forwards) > 1 and forwards != forwards[::-1]:
        about = about_order(reading, surprisals(run, task.join_tgt(forwards[::-1])))
        of = f"{run.id} {trained.checkpoint_mark(run)} {tuple(tokens)}"
        article.check({"order": about}, of=of)


def _figures(reading: pd.DataFrame, unit: str) -> None:
    """Show how well the model predicts a text, in nats, bits and perplexity."""
    loss = float(reading["nats"].mean())
    bits = {
        "words": _("Bits per word"),
        "characters": _("Bits per character"),
        "bpe": _("Bits per piece"),
    }
    answer.cards(
        (_("Loss"), _("{nats} nats", nats=f"{loss:.3f}"), _("Mean surprise of a token, −ln p.")),
        (bits[unit], f"{loss * BITS:.2f}", _("−log₂ p: the cost of compressing this text.")),
        (
            _("Perplexity"),
            f"{np.exp(loss):.2f}",
            _("exp(loss): as unsure as among this many tokens."),
        ),
        (
            _("Expected loss"),
            _("{nats} nats", nats=f"{reading['entropy'].mean():.3f}"),
            _("Mean entropy of the predictions. Much lower than the loss means overconfident."),
        ),
    )


def _guesses(reading: pd.DataFrame, picked: int) -> None:
    """Show the predictions for the position of a token."""
    token, nats, rank, _entropy, best = reading.iloc[picked]
    st.markdown(
        _(
            "**{token}** (token {n}): probability {p}, guess no. {rank}, {bits} bits.",
            n=picked + 1,
            token=escape(plots.shown(token)),
            bits=f"{nats * BITS:.2f}",
            p=f"{np.exp(-nats):.3g}",
            rank=f"{rank:,}",
        )
    )
    show.figure(
        plots.guesses(best, token, float(np.exp(-nats)), int(rank)),
        _("The predictions for this position; the actual token is marked."),
        key="read-guesses",
    )


def lens(run: Run) -> None:
    """Show the answer of the model after each layer."""
    field = view.text(
        N_("Text"),
        example_text(run, 16),
        MAX_LOOKED,
        help=lambda: _("Shows the first {n} tokens.", n=MAX_SHOWN - 1),
        holds_for=run.id,
    )
    _lens(run, typed.check_length(view.one(field, "text", "lens"), MAX_LOOKED))
    show.code(lens_logits)


def _lens(run: Run, text: str) -> None:
    """Draw the lens on a text, or on the answer of an adder."""
    predictions = read_with_lens(run, text)
    show.figure(
        plots.lens_map(*predictions, max_tokens=MAX_SHOWN),
        _("Rows: what the model would predict after each layer."),
        key="lens-map",
    )
    st.markdown(_(settling_depths([row[:MAX_SHOWN] for row in predictions[1]])))


def add(run: Run) -> None:
    n = run.experiment.task_as(TextTaskConfig).size
    field = view.text(
        N_("A sum"),
        f"{'8' * n}+{'1' * (n - 1)}7",
        MAX_SUM,
        help=lambda: _("Up to {n} digits each, such as 12+34.", n=n),
        holds_for=run.id,
    )
    text = typed.check_length(view.one(field, "text", "add"), MAX_SUM)
    source, written, truth, chances = answer_sum(run, text)
    sure = show.percent(float(chances.to_numpy().max(1).prod()))
    st.markdown(
        answer.in_a_line(
            (_("A sum"), source),
            (_("Model"), "".join(token for token in written if token != "<eos>")),
            (_("Truth"), "".join((truth or ())[:-1])),
            (_("Probability of this answer"), sure),
            is_right=written == truth,
        )
    )
    show.figure(
        plots.digit_map(truth or (), chances),
        _("Framed ✓: the true digit. Carries come from the right."),
        key="add-digits",
    )
    st.header(_("Logit lens"), anchor=False)
    _lens(run, text)


def _sentence(
    run: Run, label: str, examples: Sequence[str], words: Sequence[str], *, most: int, key: str
) -> str:
    """Ask for a sentence of a task, with examples and known words to append."""
    task = text_task(run.experiment.task)

    def take(example: str) -> None:
        st.session_state[f"{key}-text"] = example

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        help = N_("Use the task's words, then press Enter.")
        text = str(view.one(view.text(label, examples[0], most, help=help), "text", key))
        with st.popover(_("Examples"), icon=":material/format_quote:"):
            for index, example in enumerate(examples):
                st.button(example, key=f"{key}-example-{index}", on_click=take, args=(example,))
        with st.popover(_("Add a word"), icon=":material/dictionary:"):
            your_input.chips(task, {_("Words of the task"): sorted(words)}, key=key)
    return typed.check_length(text, most)


def sentiment(run: Run) -> None:
    """Label a sentence; show where the model looks, and what each word does."""
    words = words_of(run)
    try:
        label = N_("Your sentence")
        text = _sentence(run, label, SENTENCES, words, most=MAX_SENTENCE, key="sentiment")
        sentence = read_sentence(run, text)
    except ValueError as error:
        show.problem(error)
        typed_text = str(st.session_state["sentiment-text"])[:MAX_SENTENCE]
        your_input.suggest(text_task(run.experiment.task), typed_text, key="sentiment")
        return
    _answer(sentence)
    _words(run, sentence)
    _pairs(run, sentence)


def _answer(sentence: SentenceReading) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        colours = {"negative": VERMILION, "neutral": GREY, "positive": GREEN}
        look = {
            "colour": [colours.get(label, BLUE) for label in sentence.labels],
            "textposition": "auto",
        }
        figure = chart(
            chances(sentence),
            "bars",
            x="chance",
            y="label",
            orientation="h",
            text="words",
            looks=[look],
            across={"range": [0, 1], "dtick": 0.25},
        )
        show.figure(figure, _("The model's answer."), key="sentiment-labels")
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
        "try/rule",
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
        caption = _("Attention of the mean of all words, by head. ▸: deciding words.")
        if shift:
            caption = _("Attention of the CLS token, by head. ▸: deciding words.")
        show.figure(
            head_rows(sentence.heads, sentence.keys, marked=[index + shift for index in marked]),
            caption,
            key="sentiment-heads",
        )
    with right:
        about = about_word(sentence)
        of = f"{run.id} {sentence.step} {sentence.words}"
        if about is not None and not article.guess(about, "word", of=of):
            return
        table = explanations(sentence)
        figure = chart(
            table,
            "bars",
            x="word",
            y="value",
            colour="name",
            ticks=with_signs(sentence.words, marked),
            hover=["number"],
            looks={
                "needed": {"name": _("lost without it"), "colour": VERMILION, "pattern": ""},
                "relevance": {"name": _("relevance"), "colour": BLUE, "pattern": "/"},
                "rollout": {"name": _("rollout"), "colour": PURPLE, "pattern": "x"},
            },
            across={"tickangle": -40},
            up={"range": [1.05 * min(0.0, table["value"].min()), 1.05]},
        )
        caption = _("Probability lost without each word; relevance; rollout.")
        show.figure(figure, caption, key="sentiment-words")


def _pairs(run: Run, sentence: SentenceReading) -> None:
    pairs = minimal_pairs(sentence.words)
    if not pairs:
        return
    st.header(_("Minimal pairs"), anchor=False)
    changes = [_("as it is"), *map(_, pairs)]
    try:
        table = compare_with_rule(run, (sentence.words, *pairs.values()))
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


def blanks(run: Run) -> None:
    """Fill hidden words; show where each gap looks, and the exact probabilities."""
    _fill(run)
    _spans()


def _fill(run: Run) -> None:
    try:
        label, words = N_("Your sentence, ___ for a hidden word"), blank_words(run)
        text = _sentence(run, label, GAPPED, words, most=MAX_GAPPED, key="blanks")
        tokens = _hidden(blank_tokens(run, text))
        step, gaps = fill_blanks(run, tokens)
    except ValueError as error:
        show.problem(error)
        return
    if not gaps[0].truth:
        st.info(_("The grammar has no such sentence: no truth to compare."), icon=":material/info:")
    for blank in gaps:
        _blank(run, step, tokens, blank)


def _spans() -> None:
    st.header(_("T5: hidden spans"), anchor=False, divider="grey")
    with st.expander(_("How it works"), icon=":material/help:"):
        show.prose(paragraph("try/how-spans"))
    preset = PRESETS[_SPANS]
    task = text_task(preset.experiment.task)
    pair = task.sample(random.Random(_SEED))
    source, target = escape(task.join_src(pair.src)), escape(task.join_tgt(pair.tgt))
    st.markdown(f"{source}  \n:gray[:material/subdirectory_arrow_right:] **{target}**")
    time = run_time.estimate_text(preset.experiment)
    if st.button(
        _("Train it and watch, {time}", time=time),
        icon=":material/play_arrow:",
        key="blanks-train-spans",
    ):
        run_actions.start_preset(_SPANS)


def _hidden(tokens: tuple[str, ...]) -> tuple[str, ...]:
    names = [token if token.isalpha() else GAP for token in tokens]
    gaps = [position for position, name in enumerate(names) if name == GAP]
    pressed = st.pills(
        _("Press a word to hide it"),
        list(range(len(tokens))),
        format_func=lambda position: escape(names[position]),
        selection_mode="multi",
        default=gaps,
        key=f"blanks-hide-{' '.join(names)}",
    )
    return hide_words(tokens, pressed)


def _blank(run: Run, step: int, tokens: tuple[str, ...], blank: Blank) -> None:
    words = [token if token.isalpha() else GAP for token in tokens]
    words[blank.position] = "[ ? ]"
    st.header(escape(" ".join(words)), anchor=False, divider="grey")
    left, right = st.columns(2, gap="medium")
    about = about_gap(blank)
    of = f"{run.id} {step} {tokens} {blank.position}"
    with left:
        is_shown = about is None or article.guess(about, "gap", of=of)
    if is_shown:
        _choice(left, step, blank)
    with right:
        show.figure(
            head_rows(blank.heads, [*words], marked=[blank.position]),
            _("Attention of the gap (▸), by head."),
            key=f"blanks-gap-{blank.position}",
        )
    _entropies(blank)


def _choice(place: DeltaGenerator, step: int, blank: Blank) -> None:
    """Draw the likeliest words, and the exact probabilities."""
    shown = blank.top(N_WORDS)
    with place:
        sides = {"truth": _("truth"), "model": _("model")}
        figure = chart(
            shown,
            "bars",
            x=sides if blank.truth else {"model": sides["model"]},
            y="word",
            orientation="h",
            looks={"truth": {"colour": GREEN, "pattern": "/"}, "model": {"colour": BLUE}},
        )
        show.figure(
            figure,
            _("Model at step {step}, and the exact probabilities.", step=f"{step:,}"),
            key=f"blanks-choice-{blank.position}",
        )


def _entropies(blank: Blank) -> None:
    cards = [(_("Model's entropy"), f"{blank.model_entropy:.2f}", _("How unsure the model is."))]
    if blank.truth:
        cards += [
            (_("True entropy"), f"{blank.truth_entropy:.2f}", _("How unsure a perfect reader is.")),
            (
                _("Lost"),
                f"{blank.excess:.3f}",
                _("Kullback-Leibler divergence from truth to model."),
            ),
        ]
    answer.cards(*cards)
    st.caption(_("In nats: 0 is sure; ln 8 = 2.08 is eight equal words."))


def own_text(_run: Run | None = None) -> None:
    """Ask for a text and its tokens, and train on it."""
    show.prose(paragraph("try/own-text"))
    st.session_state.setdefault("train-own-text", "")
    text = st.text_area(
        _("Training text"),
        key="train-own-text",
        height=240,
        placeholder=read_text()[:600] + " …",
        persist_state="session",
    )
    units = {name: unit.label for name, unit in UNITS.items()}
    help = N_("Words need much more text than characters.")
    unit = view.one(view.choice(N_("Tokens"), units, "characters", help=help), "unit", "train")
    read = text or read_text()
    tokens = learn_from_text(unit, read).cut_text(read)
    st.caption(
        ngettext(
            "{n} token, {different} distinct.",
            "{n} tokens, {different} distinct.",
            len(tokens),
            n=f"{len(tokens):,}",
            different=f"{len(set(tokens)):,}",
        )
    )
    problem = text_problem(text, unit) if text else None
    if problem is not None:
        show.problem(problem)
    if st.button(
        _("Train on this text"),
        type="primary",
        icon=":material/play_arrow:",
        disabled=problem is not None,
        key="train-own",
    ):
        values = PRESETS["gpt-text"].experiment.model_dump()
        data = controls.keep_text(text, unit).id if text else ""
        values["task"] |= {"data": data, "unit": unit}
        name = _("My text") if text else "Alice"
        run = run_actions.start(Experiment.parse(values), name=f"{name}, {_(UNITS[unit].label)}")
        if run is not None:
            run_actions.watch(run)
    st.caption(_("Saved as a data set; manage it on Own data."))
