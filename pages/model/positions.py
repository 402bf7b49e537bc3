"""Positions: how a Transformer, which sees a set, is told the order."""

from __future__ import annotations

from pages.ui import (
    linked,
    positions_learned,
    positions_race,
    positions_relative,
    positions_shuffle,
    positions_waves,
    show,
)
from pages.ui.words import _

_KEY = "positions-view"
VIEWS = {
    "sinusoidal": (_("Sinusoidal"), positions_waves.view),
    "learned": (_("Learned"), positions_learned.learned),
    "rotary": (_("Rotary"), positions_relative.rotary),
    "alibi": (_("ALiBi"), positions_relative.alibi),
    "patches": (_("Patches, 2-D"), positions_learned.patches),
    "shuffle": (_("Shuffle the words"), positions_shuffle.view),
    "race": (_("Which learns best?"), positions_race.view),
}


def page() -> None:
    """Show one side of positions at a time; a link holds which."""
    show.header("positions")
    labels = {name: label for name, (label, _view) in VIEWS.items()}
    chosen = linked.choice(
        _("Positions"), labels, key=_KEY, query="view", old=_KEY, is_labelled=False
    )
    VIEWS[chosen][1]()


page()
