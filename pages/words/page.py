"""Words into tensors: tokens, numbers, batches, embeddings that move, and patches beside them."""

from __future__ import annotations

from pages.i18n import _
from pages.ui import show, view_link
from pages.words import batch, embeddings, moving, patches, tokens
from pages.words.link import VIEW

VIEWS = {
    "tokens": tokens.view,
    "batch": batch.view,
    "embeddings": embeddings.view,
    "moving": moving.view,
    "patches": patches.view,
}


def page() -> None:
    show.header("words")
    VIEWS[view_link.choice(_("Step"), VIEW, is_labelled=False)]()


page()
