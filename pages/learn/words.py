"""Words into tensors: tokens, numbers, batches, embeddings, and embeddings that move."""

from __future__ import annotations

import streamlit as st

from pages.ui import show, words_batch, words_embeddings, words_moving, words_tokens
from pages.ui.words import _

VIEWS = {
    "tokens": (_("Tokenise"), words_tokens.view),
    "batch": (_("Ids, padding and mask"), words_batch.view),
    "embeddings": (_("Embeddings"), words_embeddings.view),
    "moving": (_("Moving while they learn"), words_moving.view),
}


def page() -> None:
    """Show one step of the way from text to vectors at a time; a link holds which."""
    show.header("words")
    picked = st.segmented_control(
        _("Step"),
        list(VIEWS),
        format_func=lambda name: VIEWS[name][0],
        default="tokens",
        required=True,
        key="words-view",
        bind="query-params",
        wrap=True,
        label_visibility="collapsed",
    )
    VIEWS[picked if picked in VIEWS else "tokens"][1]()


page()
