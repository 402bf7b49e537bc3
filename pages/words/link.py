"""What the page on words shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import _
from pages.ui import view_link
from pages.ui.view_link import Choice

VIEW = view_link.named(
    "view",
    {
        "tokens": _("Tokenise"),
        "batch": _("Ids, padding and mask"),
        "embeddings": _("Embeddings"),
        "moving": _("Moving while they learn"),
    },
    key="words-view",
    old=("words-view",),
)
CUT = view_link.named(
    "cut",
    {
        "bpe": _("Byte-pair encoding"),
        "word": _("Words"),
        "character": _("Characters"),
        "byte": _("Bytes"),
    },
    key="words-cut",
    old=("words-cut",),
)
CORPUS = view_link.named(
    "corpus",
    {
        "text": _("This text"),
        "english": _("Toy grammar, English"),
        "korean": _("Toy grammar, Korean"),
    },
    key="words-corpus",
    old=("words-corpus",),
)
TABLE = view_link.named(
    "table",
    {"src_embedding": _("Source words"), "tgt_embedding": _("Target words")},
    key="words-table",
    old=("words-table",),
)
DIMENSIONS = Choice("words-dimensions", names=("2", "3"), first="2")


@dataclass(frozen=True, slots=True)
class WordsView:
    """What the page shows."""

    view: str = view_link.linked(VIEW)
    cut: str = view_link.linked(CUT)
    corpus: str = view_link.linked(CORPUS)
    table: str = view_link.linked(TABLE)
    dimensions: str = view_link.linked(DIMENSIONS)
