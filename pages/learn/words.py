"""Words into tensors: tokens, numbers, batches, embeddings, and embeddings that move."""

from __future__ import annotations

from pages.ui import linked, show, words_batch, words_embeddings, words_moving, words_tokens
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
    picked = linked.choice(
        _("Step"),
        {name: label for name, (label, _view) in VIEWS.items()},
        key="words-view",
        query="view",
        old="words-view",
        is_labelled=False,
    )
    VIEWS[picked][1]()


page()
