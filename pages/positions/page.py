"""Positions: how a Transformer, which sees a set, is told the order."""

from __future__ import annotations

from pages.i18n import N_, _
from pages.positions import learned, race, relative, shuffle, waves
from pages.ui import show, url_choice

_KEY = "positions-view"
VIEWS = {
    "sinusoidal": (N_("Sinusoidal"), waves.view),
    "learned": (N_("Learned"), learned.learned),
    "rotary": (N_("Rotary"), relative.rotary),
    "alibi": (N_("ALiBi"), relative.alibi),
    "patches": (N_("Patches, 2-D"), learned.patches),
    "shuffle": (N_("Shuffle the words"), shuffle.view),
    "race": (N_("Which learns best?"), race.view),
}


def page() -> None:
    """Show one side of positions at a time; a link holds which."""
    show.header("positions")
    labels = {name: label for name, (label, _view) in VIEWS.items()}
    chosen = url_choice.choice(
        _("Positions"), labels, key=_KEY, query="view", old=_KEY, is_labelled=False
    )
    VIEWS[chosen][1]()


page()
