"""Ids, padding and mask: your sentences as one rectangle of numbers."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import show, state, typed
from pages.ui.model import question
from pages.ui.typed import escape
from tfm_core.inspect.text import questions, tokenise
from tfm_core.inspect.text.tokenise import PaddedBatch
from tfm_core.plots.texts import tokens as plots

EXAMPLE = "the dog sleeps\nthe small cat eats an apple\na friend sees the dog\n개가 잔다"

_MAX = 1500  # characters


def view() -> None:
    text = st.text_area(
        _("Your sentences, one per line"),
        EXAMPLE,
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
