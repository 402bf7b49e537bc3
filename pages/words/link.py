"""The state of the page in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui.address import parameters, view_link
from pages.ui.address.parameters import Choice

VIEW = parameters.named(
    "view",
    {
        "tokens": N_("Tokenise"),
        "batch": N_("Ids and padding"),
        "embeddings": N_("Embeddings"),
        "moving": N_("While learning"),
        "patches": N_("Words and patches"),
    },
    key="words-view",
    old=("words-view",),
)
CUT = parameters.named(
    "cut",
    {
        "bpe": N_("Byte-pair encoding"),
        "word": N_("Words"),
        "character": N_("Characters"),
        "byte": N_("Bytes"),
    },
    key="words-cut",
    old=("words-cut",),
)
CORPUS = parameters.named(
    "corpus",
    {
        "text": N_("This text"),
        "english": N_("Toy grammar, English"),
        "korean": N_("Toy grammar, Korean"),
    },
    key="words-corpus",
    old=("words-corpus",),
)
TABLE = parameters.named(
    "table",
    {"src_embedding": N_("Source words"), "tgt_embedding": N_("Target words")},
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
