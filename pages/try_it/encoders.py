"""Reading: encoder-only models on sentences, gaps and patches."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state, typed
from pages.app.address import view
from pages.app.model import question
from pages.app.navigation import head, page_table
from pages.app.runs import run_actions, run_time
from pages.app.runs.shown_run import Needs
from pages.app.typed import escape
from pages.i18n import N_, _, content, paragraph
from pages.try_it import answer
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import text_task
from tfm_core.inspect.attention import token_roles
from tfm_core.inspect.attention.token_roles import CLS, MEAN, PATCH, TokenRoles
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.text import blanks as filling
from tfm_core.inspect.text import questions
from tfm_core.inspect.text import sentence as reading
from tfm_core.inspect.text.blanks import Blank
from tfm_core.inspect.text.sentence import SentenceReading
from tfm_core.plots.chart import chart
from tfm_core.plots.palette import BLUE, GREEN, GREY, PURPLE, VERMILION
from tfm_core.plots.texts.gpt import head_rows, with_signs
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent

SCOPE = "encoders"
MAX_SENTENCE, MAX_GAPPED = 300, 200  # characters
_TEXT, _GAPS = "encoders-text", "encoders-gaps"
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


@dataclass(frozen=True)
class Encoders:
    """The kind of encoder that is shown."""

    view: str = view.choice(
        N_("View"),
        {
            "sentiment": N_("Sentiment"),
            "blanks": N_("Fill in the blank"),
            "patches": N_("CLS and patches"),
        },
        look={"label_visibility": "collapsed"},
    )


def page() -> None:
    show.header("encoders")
    with head.beside(), st.container(horizontal=True, vertical_alignment="center"):
        shown = view.ask(Encoders, SCOPE).view
        with st.popover(_("How it works"), icon=":material/help:"):
            show.prose(content(f"encoders_{shown}"))
    {"sentiment": _sentiment, "blanks": _blanks, "patches": _patches}[shown]()


def _patches() -> None:
    needs = Needs(
        N_("a vision transformer"),
        token_roles.reads_patches,
        first="recorded-notebook-vit",
        presets=("vit-digits",),
    )
    _show_with(needs, _roles)


def _roles(run: Run) -> None:
    try:
        with st.spinner(_("Reading the tokens …")):
            roles = token_roles.token_roles(run)
    except ValueError as error:
        show.problem(error)
        return
    st.markdown(_(roles.conclusion))
    _table(roles)
    st.caption(
        paragraph(
            "encoders/probes", n_fit=roles.n_fit, n_tried=roles.n_tried, n_patches=roles.n_patches
        )
    )
    if roles.note:
        st.caption(_(roles.note))
    if run.experiment.has_cls:
        return
    st.info(_("No CLS token here: the head reads the patch mean."), icon=":material/info:")
    if st.button(_("Train it with a CLS token"), icon=":material/play_arrow:", key="encoders-twin"):
        model = run.experiment.model.model_dump() | {"pooling": "cls"}
        name = _("{name}, with CLS", name=run.meta.name)
        twin = run_actions.start(run.experiment.replace(model=model), name=name)
        if twin is not None:
            state.set_current_run(twin.id)
            st.rerun()


def _table(roles: TokenRoles) -> None:
    names = {CLS: _("CLS token"), MEAN: _("mean of patches"), PATCH: _("one patch")}
    shown = [name for name in names if name in roles.digit]
    stands = {
        CLS: _("one learned vector, no part of the picture"),
        MEAN: _("the whole picture, all patches equally"),
        PATCH: _("its own pixels and position"),
    }
    rows = [(_("stands for"), *(stands[name] for name in shown))]
    for depth in range(len(roles.digit[MEAN])):
        where = _("digit, after layer {n}", n=depth) if depth else _("digit, before layer 1")
        rows.append((where, *(show.percent(roles.digit[name][depth]) for name in shown)))
    last = _("ink of a patch, after the last layer")
    rows.append((last, *(show.percent(max(0.0, roles.ink[name])) for name in shown)))
    if roles.looks:
        own, to_cls = (show.percent(share) for share in roles.looks)
        rows.append(
            (
                _("attention in the last layer"),
                _("{share} to itself", share=own),
                "–",
                _("{share} to CLS", share=to_cls),
            )
        )
    show.facts(rows, ["", *(names[name] for name in shown)])


def _show_with(needs: Needs, draw: Callable[[Run], None]) -> None:
    """Draw with a run that fits."""
    run = head.run(needs)
    if run is None:
        return
    head.step([model_of(run)[1]])
    st.fragment(draw)(run)
    st.page_link(
        page_table.path_of("attention"),
        label=_("Open all maps"),
        icon=":material/visibility:",
        query_params={"run": run.id},
    )


def _sentence(
    label: str, examples: Sequence[str], words: Sequence[str], *, key: str, buttons: str
) -> str:
    """Ask for a sentence, stored under ``key``, with examples and known words to insert."""
    pressed = f"{buttons}-words"

    def take(example: str) -> None:
        st.session_state[key] = example

    def put() -> None:
        word = st.session_state[pressed]
        st.session_state[pressed] = None
        if word is not None:
            st.session_state[key] = with_word(str(st.session_state[key]), word, words)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text = st.text_input(label, key=key, help=_("Use the task's words, then press Enter."))
        with st.popover(_("Examples"), icon=":material/format_quote:"):
            for index, example in enumerate(examples):
                st.button(example, key=f"{buttons}-{index}", on_click=take, args=(example,))
        with st.popover(_("Add a word"), icon=":material/dictionary:"):
            st.pills(_("Words of the task"), sorted(words), key=pressed, on_change=put)
    return text


def with_word(text: str, word: str, vocabulary: Sequence[str]) -> str:
    """Replace the first unknown word of a text, or append the word."""
    for match in re.finditer(r"[^\W\d_]+(?:[’'][^\W\d_]+)?", text):
        if match[0].lower() not in vocabulary and not re.search("[’']", match[0]):
            return text[: match.start()] + word + text[match.end() :]
    return f"{text.rstrip(' .')} {word}".lstrip()


def _sentiment() -> None:
    st.session_state.setdefault(_TEXT, SENTENCES[0])
    needs = Needs(
        N_("a model of sentiment"),
        reading.reads_labels,
        first="recorded-sentiment",
        presets=("sentiment",),
    )
    _show_with(needs, _classified)


def _classified(run: Run) -> None:
    text = _sentence(
        _("Your sentence"), SENTENCES, reading.words_of(run), key=_TEXT, buttons="encoders-example"
    )
    try:
        sentence = reading.read(run, typed.within(text, MAX_SENTENCE))
    except ValueError as error:
        show.problem(error)
        return
    _answer(sentence)
    _words(run, sentence)
    _pairs(run, sentence)


def _answer(sentence: SentenceReading) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        colours = {"negative": VERMILION, "neutral": GREY, "positive": GREEN}
        look = {
            "colour": [colours.get(one, BLUE) for one in sentence.labels],
            "textposition": "auto",
        }
        figure = chart(
            reading.chances(sentence),
            "bars",
            x="chance",
            y="label",
            orientation="h",
            text="words",
            looks=[look],
            across={"range": [0, 1], "dtick": 0.25},
        )
        show.figure(figure, _("The model's answer."), key="encoders-labels")
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
            head_rows(
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
        table = reading.explained(sentence)
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
        words = _("Probability lost without each word; relevance; rollout.")
        show.figure(figure, words, key="encoders-words")


def _pairs(run: Run, sentence: SentenceReading) -> None:
    pairs = reading.minimal_pairs(sentence.words)
    if not pairs:
        return
    st.header(_("Minimal pairs"), anchor=False)
    changes = [_("as it is"), *map(_, pairs)]
    try:
        table = reading.compared(run, (sentence.words, *pairs.values()))
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


def _blanks() -> None:
    st.session_state.setdefault(_GAPS, GAPPED[0])
    needs = Needs(
        N_("a model that guesses hidden words"),
        filling.fills_blanks,
        first="recorded-masked-words",
        presets=("masked-words",),
    )
    _show_with(needs, _filled)
    _spans()


def _spans() -> None:
    st.header(_("T5: hidden spans"), anchor=False, divider="grey")
    with st.expander(_("How it works"), icon=":material/help:"):
        show.prose(content("encoders_spans"))
    preset = PRESETS[_SPANS]
    task = text_task(preset.experiment.task)
    pair = task.sample(random.Random(_SEED))
    source, target = escape(task.join_src(pair.src)), escape(task.join_tgt(pair.tgt))
    st.markdown(f"{source}  \n:gray[:material/subdirectory_arrow_right:] **{target}**")
    time = run_time.takes(preset.experiment)
    if st.button(
        _("Train it and watch, {time}", time=time),
        icon=":material/play_arrow:",
        key="encoders-train-spans",
    ):
        run_actions.start_preset(_SPANS)


def _filled(run: Run) -> None:
    text = _sentence(
        _("Your sentence, ___ for a hidden word"),
        GAPPED,
        filling.words_of(run),
        key=_GAPS,
        buttons="encoders-gaps",
    )
    try:
        tokens = _hidden(filling.tokens_of(run, typed.within(text, MAX_GAPPED)))
        step, blanks = filling.fill(run, tokens)
    except ValueError as error:
        show.problem(error)
        return
    if not blanks[0].truth:
        st.info(_("The grammar has no such sentence: no truth to compare."), icon=":material/info:")
    for blank in blanks:
        _blank(run, step, tokens, blank)


def _hidden(tokens: tuple[str, ...]) -> tuple[str, ...]:
    names = [token if token.isalpha() else GAP for token in tokens]
    gaps = [position for position, name in enumerate(names) if name == GAP]
    pressed = st.pills(
        _("Press a word to hide it"),
        list(range(len(tokens))),
        format_func=lambda position: escape(names[position]),
        selection_mode="multi",
        default=gaps,
        key=f"encoders-hide-{' '.join(names)}",
    )
    return filling.hide(tokens, pressed)


def _blank(run: Run, step: int, tokens: tuple[str, ...], blank: Blank) -> None:
    words = [token if token.isalpha() else GAP for token in tokens]
    words[blank.position] = "[ ? ]"
    st.header(escape(" ".join(words)), anchor=False, divider="grey")
    left, right = st.columns(2, gap="medium")
    asked = questions.about_gap(blank)
    of = f"{run.id} {step} {tokens} {blank.position}"
    with left:
        is_shown = asked is None or question.guess(asked, "gap", of=of)
    if is_shown:
        _choice(left, step, blank)
    with right:
        show.figure(
            head_rows(blank.heads, [*words], theme=state.theme(), marked=[blank.position]),
            _("Attention of the gap (▸), by head."),
            key=f"encoders-gap-{blank.position}",
        )
    _sure(blank)


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
            looks={
                "truth": {"colour": GREEN, "pattern": "/"},
                "model": {"colour": BLUE},
            },
        )
        show.figure(
            figure,
            _("Model at step {step}, and the exact probabilities.", step=f"{step:,}"),
            key=f"encoders-choice-{blank.position}",
        )


def _sure(blank: Blank) -> None:
    cards = [(_("Model's entropy"), f"{blank.model_entropy:.2f}", _("How unsure the model is."))]
    if blank.truth:
        cards += [
            (
                _("True entropy"),
                f"{blank.truth_entropy:.2f}",
                _("How unsure a perfect reader is."),
            ),
            (
                _("Lost"),
                f"{blank.excess:.3f}",
                _("Kullback-Leibler divergence from truth to model."),
            ),
        ]
    answer.cards(*cards)
    st.caption(_("In nats: 0 is sure; ln 8 = 2.08 is eight equal words."))


if __name__ == "__main__":
    page()
