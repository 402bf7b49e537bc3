"""Words become numbers: the article on tokens, ids, vectors and tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.app import article, show, state, typed
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.article import Figures, Made, keep
from pages.app.navigation import page_table
from pages.app.runs import shown_run
from pages.app.runs.shown_run import Needs
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext, paragraph
from pages.learn.numbers import tensors
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.user_data import tokens as byte_pairs
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.facts.storage import MAX_EMBEDDED
from tfm_core.inspect.attention.pictures import reads_patches
from tfm_core.inspect.conclusions import class_similarity
from tfm_core.inspect.position_tables import cosines
from tfm_core.inspect.text import embeddings, tokenise
from tfm_core.inspect.text.embeddings import EmbeddingTable, by_class
from tfm_core.inspect.text.tokenise import (
    PaddedBatch,
    Token,
    about_compound,
    about_padding,
    compound_of,
)
from tfm_core.plots import tokens as plots
from tfm_core.plots.chart import Look, chart
from tfm_core.plots.films import projected
from tfm_core.plots.palette import BLUE, GREY, VERMILION

SCOPE = "words"
EXAMPLE = "The small dog sees the smallest dogs. 작은 개가 작은 개를 본다."
SENTENCES = "the dog sleeps\nthe small cat eats an apple\na friend sees the dog\n개가 잔다"
PRESET = "translate"
NEEDS = Needs(
    N_("a model of words"),
    lambda experiment: experiment.task.has_source,
    first="recorded-korean",
    presets=(PRESET,),
    is_ready=lambda run: embeddings.why_no_embeddings(run) is None,
)
_MAX = 1500  # characters
_SYMBOLS = ("square", "diamond", "triangle-up")
Cut = Callable[[str], list[Token]]
CODE: dict[str, Callable[..., Any]] = {
    "bpe": byte_pairs.apply,
    "word": tokenise.vocabulary,
    "character": tokenise.by_character,
    "byte": tokenise.by_byte,
}
"""The source of each way to cut."""
_TABLES = {"src_embedding": N_("Source words"), "tgt_embedding": N_("Target words")}
CORPORA = {
    "text": N_("This text"),
    "english": N_("Toy grammar, English"),
    "korean": N_("Toy grammar, Korean"),
}


@dataclass(frozen=True)
class TokenCut:
    """How a text is cut."""

    cut: str = view.choice(
        N_("Tokenise by"),
        {
            "bpe": N_("Byte-pair encoding"),
            "word": N_("Words"),
            "character": N_("Characters"),
            "byte": N_("Bytes"),
        },
        look={"label_visibility": "collapsed"},
    )


@dataclass(frozen=True)
class Corpus:
    """What the vocabulary is learned from."""

    corpus: str = view.choice(N_("Vocabulary from"), CORPORA, is_list=True)


@dataclass(frozen=True)
class ChosenTable:
    """The embedding table of a run."""

    table: str = view.choice(N_("Table"), _TABLES)


@dataclass(frozen=True)
class MovingWords:
    """How the words are drawn while they move."""

    dimensions: str = view.choice(N_("Dimensions"), {"2": "2", "3": "3"}, query="words-dimensions")


def patches(_made: Made) -> None:
    """Put a model that reads words beside one that reads pictures."""
    language, words = _side("translate", is_words=True)
    vision, pixels = _side("vit-digits", is_words=False)
    rows = embeddings.compare_inputs(language, vision)
    show.facts([[_(text) for text in row] for row in rows], ["", words, pixels])
    for page, query, label in (
        ("try", {"view": "patches"}, _("What CLS and patches learn")),
        ("positions", {}, _("Positions, fixed and learned")),
    ):
        st.page_link(page_table.path_of(page), label=label, query_params=query)


def _side(preset: str, *, is_words: bool) -> tuple[Experiment, str]:
    """Return the current run's experiment and name if it fits, else a preset's."""
    fits = embeddings.reads_words if is_words else reads_patches
    run = shown_run.current_run()
    if run is not None and fits(run.experiment):
        return run.experiment, escape(run.meta.name)
    return PRESETS[preset].experiment, _("preset “{name}”", name=_(PRESETS[preset].label))


def tokens(made: Made) -> None:
    """Cut the reader's text into tokens, in four ways."""
    raw = st.text_area(
        _("Your text"), EXAMPLE, key="words-text", height=68, persist_state="session"
    )
    way = view.ask(TokenCut, SCOPE).cut
    facts, choices = show.fact_line("words-tokens")
    problems = st.container()
    with choices, view.warnings_in(problems):
        corpus = view.ask(Corpus, SCOPE).corpus
        is_lower = st.toggle(_("Lower case"), key="words-lower", persist_state="session")
    known = _("Vocabulary from **{corpus}**", corpus=_(CORPORA[corpus]))
    facts.caption(show.joined(known, _("lower case") if is_lower else ""))
    made["text"] = text = tokenise.clean(raw, lower=is_lower)
    source = text if corpus == "text" else tokenise.grammar_corpus(corpus)
    source = source.lower() if is_lower else source
    if way == "bpe":
        cut = _pairs(text, source)
    elif way == "byte":
        cut = tokenise.by_byte
        _chips(cut(text), tokenise.FIRST_BYTE + 256)
    else:
        cut = _whole(text, source, by_words=way == "word")
    if word := compound_of(text):
        cuts = cut(word)
        asked = about_compound(escape(word), cuts)
        keep(made, f"{word} {[token.id for token in cuts]}", compound=asked)
    show.code(CODE[way])


def _pairs(text: str, source: str) -> Cut:
    """Merge pairs, show what each merge costs and saves; return how words are cut then."""
    learned, words = _learned(source), tokenise.words_of(text)
    most = len(learned.merges)
    k = 0
    if most:
        k = st.slider(_("Merges"), 0, most, min(most, 12), key=f"words-merges-{most}")
    else:
        st.info(_("No pair occurs twice: nothing to merge."))
    _chips(tokenise.bpe_tokens(learned, words, k), len(SPECIALS) + len(learned.vocabulary(k)))
    if most:
        _merges(learned, k)
        left, right = st.columns([3, 2])
        with left:
            show.figure(
                _sizes(tokenise.text_lengths(learned, words), k, _others(text, source)),
                _("Each merge adds a token and shortens the text."),
                key="words-sizes",
            )
        with right:
            table = _merge_table(learned, k)
            st.dataframe(table, hide_index=True, height=320, key=f"words-merge-table-{most}")
    return lambda word: tokenise.bpe_tokens(learned, [word], k)


def _merges(learned: tokenise.Bpe, k: int) -> None:
    first, second, count = learned.merges[k - 1] if k else learned.merges[0]
    values = {
        "left": _code(first),
        "right": _code(second),
        "merged": _code(first + second),
        "n": count,
    }
    st.markdown(
        _("Merge {k}: **{left}** + **{right}** → **{merged}**, {n} times.", k=k, **values)
        if k
        else _("First merge: **{left}** + **{right}** → **{merged}**, {n} times.", **values)
    )


def _whole(text: str, source: str, *, by_words: bool) -> Cut:
    """Cut at words, of which the reader keeps some, or at every character."""
    counts = tokenise.word_counts(source) if by_words else Counter(source)
    n = len(counts)
    size = n
    if by_words and n > 1:
        size = st.slider(
            _("Words in the vocabulary"),
            1,
            n,
            n,
            key=f"words-kept-{n}",
            help=_("The most frequent words; all others become <unk>."),
        )
    vocabulary = tokenise.vocabulary(counts, size)
    by = tokenise.by_word if by_words else tokenise.by_character
    _chips(by(text, vocabulary), len(vocabulary))
    return lambda word: by(word, vocabulary)


def _chips(tokens: list[Token], size: int) -> None:
    st.html(plots.chips(tokens, say=_))
    unknown = sum(token.is_unknown for token in tokens)
    n = len(tokens)
    parts = [
        ngettext("**{n:,}** token", "**{n:,}** tokens", n, n=n),
        _("vocabulary **{n}**", n=f"{size:,}"),
    ]
    if unknown:
        share = show.percent(tokenise.unknown_share(tokens))
        parts.append(_("**{n}** unknown ({share})", n=unknown, share=share))
    st.caption(" · ".join(parts))


def _sizes(curve: pd.DataFrame, k: int, others: dict[str, tuple[int, int]]) -> go.Figure:
    """Draw vocabulary size against tokens of the text; k merges, and other tokenisers, marked."""
    chosen = _("after {k} merges", k=k)
    figure = chart(
        curve,
        x="size",
        y={"length": _("byte-pair encoding")},
        hover=["merges"],
        looks=[{"colour": BLUE, "width": 2.5}],
        marked=0,
        top=36,
    )
    points = pd.DataFrame(
        [(chosen, *curve.loc[k, ["size", "length"]])]
        + [(name, *place) for name, place in others.items()],
        columns=["name", "size", "length"],
    )
    looks: list[Look] = [{"colour": VERMILION, "size": 13}]
    looks += [{"colour": GREY, "size": 11, "symbol": symbol} for symbol in _SYMBOLS]
    marks = chart(
        tokenise.SIZES.table(points), "points", x="size", y="length", colour="name", looks=looks
    )
    return figure.add_traces(marks.data)


def _others(text: str, source: str) -> dict[str, tuple[int, int]]:
    words = tokenise.vocabulary(tokenise.word_counts(source))
    characters = tokenise.vocabulary(Counter(source))
    return {
        _("words"): (len(words), len(tokenise.by_word(text, words))),
        _("characters"): (len(characters), len(text)),
        _("bytes"): (tokenise.FIRST_BYTE + 256, len(tokenise.by_byte(text))),
    }


def _merge_table(learned: tokenise.Bpe, k: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _("done"): ["✓" if number < k else "" for number in range(len(learned.merges))],
            _("merge"): range(1, len(learned.merges) + 1),
            _("pair"): [
                f"{tokenise.shown_token(left)} + {tokenise.shown_token(right)}"
                for left, right, _count in learned.merges
            ],
            _("count"): [count for _left, _right, count in learned.merges],
        }
    )


def utf8(made: Made) -> None:
    """Show the bytes of each character of the reader's text."""
    columns = [_("character"), _("bytes of UTF-8")]
    rows = pd.DataFrame(tokenise.bytes_of(made.get("text", "")), columns=columns)
    st.dataframe(rows, hide_index=True, height=220, key="words-bytes")


def _code(token: str) -> str:
    return f"`{tokenise.shown_token(token).replace('`', 'ˋ')}`"


@st.cache_data(show_spinner=False, max_entries=64)
def _learned(source: str) -> tokenise.Bpe:
    return tokenise.learn_bpe(tokenise.words_of(source))


def batch(made: Made) -> None:
    """Fill the reader's sentences up to a rectangle of ids, and mask what fills it."""
    text = st.text_area(
        _("Your sentences, one per line"),
        SENTENCES,
        key="words-sentences",
        height=130,
        persist_state="session",
        help=_(
            "At most {n} sentences of {m} words.", n=tokenise.MAX_SENTENCES, m=tokenise.MAX_TOKENS
        ),
    )
    sentences = tokenise.sentences_of(typed.check_length(text, _MAX))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        has_bos = st.toggle("<bos>", True, key="words-bos")
        has_eos = st.toggle("<eos>", True, key="words-eos")
        length = _length(sentences, has_bos=has_bos, has_eos=has_eos)
    padded = tokenise.batch(sentences, length=length, has_bos=has_bos, has_eos=has_eos)
    ids, mask = plots.ids(padded, state.theme()), plots.mask(padded, state.theme())
    show.beside(
        (ids, _("Ids: words blue, special sand (0 to 3), padding grey."), "words-ids"),
        (mask, _("Mask: 1 may be attended to, 0 may not."), "words-mask"),
    )
    _what_happened(padded)
    if not any(padded.cut):
        keep(made, padded.mask.sum(1), padding=about_padding(padded))
    with st.expander(_("Vocabulary: {n} tokens", n=len(padded.known)), icon=":material/list:"):
        st.dataframe(
            pd.DataFrame(tokenise.entries(padded.known)),
            column_config={"token": _("token"), "special": _("special")},
            hide_index=True,
            key="words-vocabulary",
            height=260,
        )
    show.code(tokenise.batch)


def _length(sentences: list[list[str]], *, has_bos: bool, has_eos: bool) -> int:
    least = 1 + has_bos + has_eos
    most = tokenise.longest(sentences, has_bos=has_bos, has_eos=has_eos)
    if most <= least:
        return most
    return st.slider(
        _("Maximum length (tokens)"), least, most, most, key=f"words-length-{least}-{most}"
    )


def _what_happened(padded: PaddedBatch) -> None:
    n, length = padded.ids.shape
    st.markdown(
        _(
            "Shape **({n}, {length})**: {share} padding; {pairs} pairs per head.",
            n=n,
            length=length,
            share=show.percent(padded.padding_share),
            pairs=show.count(n * length * length),
        )
    )
    lost = [(number, words) for number, words in enumerate(padded.cut, 1) if words]
    if not lost:
        return
    total = sum(len(words) for _place, words in lost)
    lines = [ngettext("**{n} word was cut.**", "**{n} words were cut.**", total, n=total), ""] + [
        "- " + _("Sentence {n} lost “{words}”.", n=number, words=escape(" ".join(words)))
        for number, words in lost
    ]
    st.warning("\n".join(lines), icon=":material/content_cut:")


def lookup(made: Made) -> None:
    """Choose a table and a word of it; show that its vector is a row."""
    table = _table()
    if table is None:
        return
    choices = by_class(table.classes)
    picked = st.selectbox(
        _("Word"),
        choices,
        format_func=lambda index: f"{table.tokens[index]} ({_(table.classes[index])})",
        key=f"words-word-{table.name}-{len(table.tokens)}",
    )
    index = choices[0] if picked is None else int(picked)
    made.update(table=table, index=index)
    last = table.values[-1]
    _row, difference = embeddings.look_up(last, index)
    show.figure(
        plots.lookup(last, index, table.tokens, say=_),
        _("One-hot vector times table: one row."),
        key="words-lookup",
    )
    show.prose(paragraph("words/lookup", n=f"{last.size:,}", id=index, difference=difference))
    show.code(embeddings.look_up)


def _table() -> EmbeddingTable | None:
    """Return the chosen embedding table, or offer to train a run that has one."""
    run = shown_run.run_to_show(NEEDS)
    why = _("No run with words yet.") if run is None else _(embeddings.why_no_embeddings(run))
    if run is None or why:
        words = _("Train one, or open a recorded one.")
        shown_run.preset_buttons(f"{why} {words}", [PRESET], key="words-train", others=_recorded)
        return None
    names = embeddings.table_names(run)
    name = names[0] if names else ""
    if len(names) > 1:
        own = view.choice(N_("Table"), {name: _TABLES[name] for name in names})
        name = view.ask(ChosenTable, SCOPE, table=own).table
    with st.spinner(_("Reading the table …")):
        table = embeddings.embedding_table(run, name)
    st.caption(
        _(
            "{run}, step {step}: {rows} words × {width} numbers.",
            run=escape(run.meta.name),
            rows=len(table.tokens),
            width=table.values.shape[2],
            step=f"{table.steps[-1]:,}",
        )
    )
    return table


def likeness(made: Made) -> None:
    """Compare all words of the table, before and after training."""
    table: EmbeddingTable | None = made.get("table")
    if table is None:
        return
    index: int = made["index"]
    order = by_class(table.classes)
    before, after = (
        embeddings.class_likeness(table.values[at], table.classes, len(SPECIALS)) for at in (0, -1)
    )
    after_training = _("After training (step {n})", n=f"{table.steps[-1]:,}")
    words = class_similarity(before, after, table.steps[-1])
    if words is not None:
        st.markdown(_(words))
    for column, at, title in zip(
        st.columns(2), (0, -1), (_("Before training"), after_training), strict=True
    ):
        values = table.values[at]
        with column:
            st.subheader(title, anchor=False)
            st.dataframe(_nearest(table, at, index), hide_index=True, key=f"words-near{at}")
            within, between = embeddings.class_likeness(values, table.classes, len(SPECIALS))
            show.figure(
                plots.likeness(cosines(values), table.tokens, order),
                _("Cosine of all pairs.")
                if words is None
                else paragraph("words/likeness", within=within, between=between),
                key=f"words-like{at}",
            )


def _nearest(table: EmbeddingTable, at: int, index: int) -> pd.DataFrame:
    neighbours = embeddings.neighbours(table.values[at], index, skip=len(SPECIALS))
    return pd.DataFrame(
        {
            _("nearest to {word}", word=table.tokens[index]): [
                table.tokens[i] for i, _like in neighbours
            ],
            _("class"): [_(table.classes[i]) for i, _like in neighbours],
            _("cosine"): [round(like, 3) for _i, like in neighbours],
        }
    )


def _recorded() -> None:
    for other in visitors.available_runs():
        if embeddings.why_no_embeddings(other) is None and other.meta.preset == PRESET:
            st.button(
                _("Open “{name}”", name=escape(other.meta.name)),
                icon=":material/visibility:",
                key="words-open",
                on_click=state.set_current_run,
                args=(other.id,),
            )
            return


def moving(made: Made) -> None:
    """Play how the words of the table move while they are learned."""
    table: EmbeddingTable | None = made.get("table")
    if table is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        in_space = view.ask(MovingWords, SCOPE).dimensions
        has_labels = st.toggle(_("Labels"), True, key="words-labels", persist_state="session")
    components = embeddings.principal(table.values[-1][len(SPECIALS) :])
    if not table.is_whole:
        st.info(
            _(
                "Only the first and last state exist (older run, or above {most} numbers).",
                most=f"{MAX_EMBEDDED:,}",
            ),
            icon=":material/info:",
        )
    name = f"words-moving-{table.name}-{in_space}-{has_labels}"
    show.figure(
        projected(table, components, in_space=in_space == "3", has_labels=bool(has_labels)),
        paragraph(
            "words/moving",
            n=in_space,
            share=show.percent(float(components[2][: int(in_space)].sum())),
        ),
        key=name,
    )
    show.code(embeddings.principal)


FIGURES: Figures = {
    "tokens": tokens,
    "bytes": utf8,
    "batch": batch,
    "embeddings": lookup,
    "likeness": likeness,
    "moving": moving,
    "patches": patches,
    "operation": tensors.operation,
    "errors": tensors.errors,
    "numpy": tensors.numpy,
}
QUESTIONS = ("compound", "padding", "strides", "view")

if __name__ == "__main__":
    article.draw("numbers", FIGURES)
