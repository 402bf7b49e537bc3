"""Link of the positions page."""

from __future__ import annotations

from pages.i18n import N_
from pages.ui.address import parameters
from tfm_core.variants.positions import POSITIONS_OF_WORDS

OF_KINDS = [kind for kind in POSITIONS_OF_WORDS.values() if kind.acts_on != "nothing"]
"""The kinds that have a view of their own; those of a grid stand under patches."""

VIEW = parameters.named(
    "view",
    {
        **{kind.name: kind.label for kind in OF_KINDS},
        "patches": N_("Patches, 2-D"),
        "shuffle": N_("Shuffle the words"),
        "race": N_("Which learns best?"),
    },
    key="positions-view",
)
