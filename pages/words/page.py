"""Words into tensors: tokens, numbers, batches, embeddings, and embeddings that move."""

from __future__ import annotations

from pages.i18n import N_, _
from pages.ui import show, url_choice
from pages.words import batch, embeddings, moving, tokens

VIEWS = {
    "tokens": (N_("Tokenise"), tokens.view),
    "batch": (N_("Ids, padding and mask"), batch.view),
    "embeddings": (N_("Embeddings"), embeddings.view),
    "moving": (N_("Moving while they learn"), moving.view),
}


def page() -> None:
    """Show one step of the way from text to vectors at a time; a link holds which."""
    show.header("words")
    picked = url_choice.choice(
        _("Step"),
        {name: label for name, (label, _view) in VIEWS.items()},
        key="words-view",
        query="view",
        old="words-view",
        is_labelled=False,
    )
    VIEWS[picked][1]()


page()
