"""Tokenise: one text, cut in four ways, and byte-pair encoding merge by merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pandas as pd
import streamlit as st

from pages.i18n import _, content, ngettext
from pages.ui import show, state, typed
from pages.ui.address import view_link
from pages.ui.fact_line import fact_line, joined
from pages.ui.model import question
from pages.ui.typed import escape
from pages.words.link import CORPUS, CUT
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.text import bpe, questions, tokenise
from tfm_core.inspect.text.bpe import Bpe
from tfm_core.inspect.text.tokenise import PaddedBatch, Token
from tfm_core.plots.texts import tokens as plots

SENTENCES = "the dog sleeps\nthe small cat eats an apple\na friend sees the dog\n개가 잔다"
_MAX = 1500  # characters


EXAMPLE = "The small dog sees the smallest dogs. 작은 개가 작은 개를 본다."


def view() -> None:
    raw = st.text_area(
        _("Your text"),
        EXAMPLE,
        key="words-text",
        height=68,
        persist_state="session",
    )
    cut = view_link.choice(_("Tokenise by"), CUT, is_labelled=False)
    facts, choices = fact_line("words-tokens")
    problems = st.container()
    with choices, view_link.warnings_in(problems):
        corpus = view_link.listed(
            _("Vocabulary from"), CORPUS, help=_("A vocabulary knows only its corpus.")
        )
        is_lower = st.toggle(_("Lower case"), key="words-lower", persist_state="session")
    known = _("Vocabulary from **{corpus}**", corpus=_(CORPUS.labels[corpus]))
    facts.caption(joined(known, _("lower case") if is_lower else ""))
    try:
        text = tokenise.clean(raw, lower=is_lower)
    except ValueError as error:
        show.problem(error)
        return
    source = text if corpus == "text" else tokenise.grammar_corpus(corpus)
    source = source.lower() if is_lower else source
    {"bpe": _pairs, "word": _words, "character": _characters, "byte": _bytes}[cut](text, source)


def _pairs(text: str, source: str) -> None:
    learned = _learned(source)
    most = len(learned.merges)
    if not most:
        st.info(_("No pair occurs twice: nothing to merge."))
    k = 0
    if most:
        k = st.slider(
            _("Merges"),
            0,
            most,
            min(most, 12),
            key=f"words-merges-{most}",
            help=_("Each merge joins the most frequent pair."),
        )
    words = tokenise.words_of(text)
    _chips(bpe.tokens(learned, words, k), len(SPECIALS) + len(learned.vocabulary(k)))
    if not most:
        _check(text, lambda word: bpe.tokens(learned, [word], k))
        return
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
    left, right = st.columns([3, 2])
    with left:
        sizes, lengths = bpe.lengths(learned, words)
        show.figure(
            plots.sizes(sizes, lengths, k, _others(text, source)),
            _("Each merge adds a token and shortens the text."),
            key="words-sizes",
        )
    with right:
        st.dataframe(
            _merge_table(learned, k), hide_index=True, height=320, key=f"words-merge-table-{most}"
        )
        st.caption(_("Merges in order, with the pair's count."))
    _check(text, lambda word: bpe.tokens(learned, [word], k))
    _byte_note(text)
    show.code(bpe.apply)


def _words(text: str, source: str) -> None:
    counts = tokenise.word_counts(source)
    n = len(counts)
    size = n
    if n > 1:
        size = st.slider(
            _("Words in the vocabulary"),
            1,
            n,
            n,
            key=f"words-kept-{n}",
            help=_("The most frequent words; all others become <unk>."),
        )
    vocabulary = tokenise.vocabulary(counts, size)
    _chips(tokenise.by_word(text, vocabulary), len(vocabulary))
    _check(text, lambda word: tokenise.by_word(word, vocabulary))
    st.markdown(
        _(
            "Unknown words become number {n}; “dog” and “dogs” are unrelated.",
            n=SPECIALS.index("<unk>"),
        )
    )
    show.code(tokenise.vocabulary)


def _characters(text: str, source: str) -> None:
    vocabulary = tokenise.vocabulary(Counter(source))
    _chips(tokenise.by_character(text, vocabulary), len(vocabulary))
    _check(text, lambda word: tokenise.by_character(word, vocabulary))
    st.markdown(_("Small vocabulary, long sequence: attention costs the square of its length."))
    show.code(tokenise.by_character)


def _bytes(text: str, source: str) -> None:
    _chips(tokenise.by_byte(text), tokenise.FIRST_BYTE + 256)
    _check(text, tokenise.by_byte)
    _byte_note(text, is_open=True)
    show.code(tokenise.by_byte)


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


def _check(text: str, cut: Callable[[str], list[Token]]) -> None:
    """Ask how a new word is cut. cut: as the text above is."""
    if word := questions.compound_of(text):
        tokens = cut(word)
        asked = questions.about_compound(escape(word), tokens)
        question.check({"compound": asked}, of=f"{word} {[token.id for token in tokens]}")


def _others(text: str, source: str) -> dict[str, tuple[int, int]]:
    words = tokenise.vocabulary(tokenise.word_counts(source))
    characters = tokenise.vocabulary(Counter(source))
    return {
        _("words"): (len(words), len(tokenise.by_word(text, words))),
        _("characters"): (len(characters), len(text)),
        _("bytes"): (tokenise.FIRST_BYTE + 256, len(tokenise.by_byte(text))),
    }


def _merge_table(learned: Bpe, k: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _("done"): ["✓" if number < k else "" for number in range(len(learned.merges))],
            _("merge"): range(1, len(learned.merges) + 1),
            _("pair"): [
                f"{bpe.shown(left)} + {bpe.shown(right)}" for left, right, _count in learned.merges
            ],
            _("count"): [count for _left, _right, count in learned.merges],
        }
    )


def _byte_note(text: str, *, is_open: bool = False) -> None:
    with st.expander(_("Bytes: no unknown tokens"), expanded=is_open):
        show.prose(content("words_bytes"))
        rows = pd.DataFrame(tokenise.bytes_of(text), columns=[_("character"), _("bytes of UTF-8")])
        st.dataframe(rows, hide_index=True, height=220, key="words-bytes")


def _code(token: str) -> str:
    return f"`{bpe.shown(token).replace('`', 'ˋ')}`"


@st.cache_data(show_spinner=False, max_entries=64)
def _learned(source: str) -> Bpe:
    return bpe.learn(tokenise.words_of(source))


def batch_view() -> None:
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
    try:
        sentences = tokenise.sentences_of(typed.within(text, _MAX))
    except ValueError as error:
        show.problem(error)
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        has_bos = st.toggle(
            "<bos>", True, key="words-bos", help=_("A decoder starts writing here.")
        )
        has_eos = st.toggle("<eos>", True, key="words-eos", help=_("Teaches a model where to end."))
        length = _length(sentences, has_bos=has_bos, has_eos=has_eos)
    made = tokenise.batch(sentences, length=length, has_bos=has_bos, has_eos=has_eos)
    left, right = st.columns(2)
    with left:
        show.figure(
            plots.ids(made, state.theme()),
            _("Ids: words blue, special sand (0 to 3), padding grey."),
            key="words-ids",
        )
    with right:
        show.figure(
            plots.mask(made, state.theme()),
            _("Mask: 1 may be attended to, 0 may not."),
            key="words-mask",
        )
    _what_happened(made)
    if not any(made.cut):
        asked = questions.about_padding(made)
        question.check({"padding": asked}, of=f"{made.mask.sum(1)}")
    _vocabulary(made)
    show.code(tokenise.batch)


def _length(sentences: list[list[str]], *, has_bos: bool, has_eos: bool) -> int:
    least = 1 + has_bos + has_eos
    most = tokenise.longest(sentences, has_bos=has_bos, has_eos=has_eos)
    if most <= least:
        return most
    return st.slider(
        _("Maximum length (tokens)"),
        least,
        most,
        most,
        key=f"words-length-{least}-{most}",
        help=_("Longer sentences are cut."),
    )


def _what_happened(made: PaddedBatch) -> None:
    n, length = made.ids.shape
    st.markdown(
        _(
            "Shape **({n}, {length})**: {share} padding; {pairs} pairs per head.",
            n=n,
            length=length,
            share=show.percent(made.padding_share),
            pairs=show.count(n * length * length),
        )
    )
    lost = [(number, words) for number, words in enumerate(made.cut, 1) if words]
    if not lost:
        st.caption(_("Nothing was cut."))
        return
    total = sum(len(words) for _place, words in lost)
    lines = [ngettext("**{n} word was cut.**", "**{n} words were cut.**", total, n=total), ""] + [
        "- " + _("Sentence {n} lost “{words}”.", n=number, words=escape(" ".join(words)))
        for number, words in lost
    ]
    st.warning("\n".join(lines), icon=":material/content_cut:")


def _vocabulary(made: PaddedBatch) -> None:
    with st.expander(_("Vocabulary: {n} tokens", n=len(made.known)), icon=":material/list:"):
        st.dataframe(
            pd.DataFrame(tokenise.entries(made.known)),
            column_config={"token": _("token"), "special": _("special")},
            hide_index=True,
            key="words-vocabulary",
            height=260,
        )
        st.caption(_("<pad> is masked, <unk> any unknown word. Others by frequency."))
