"""The state of the page in its address."""

from __future__ import annotations

from pages.i18n import N_
from pages.ui.address import parameters
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
)
CORPUS = parameters.named(
    "corpus",
    {
        "text": N_("This text"),
        "english": N_("Toy grammar, English"),
        "korean": N_("Toy grammar, Korean"),
    },
    key="words-corpus",
)
TABLE = parameters.named(
    "table",
    {"src_embedding": N_("Source words"), "tgt_embedding": N_("Target words")},
    key="words-table",
)
DIMENSIONS = Choice("words-dimensions", names=("2", "3"), first="2")
