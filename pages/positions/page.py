"""Positions: how a Transformer, which sees a set, is told the order."""

from __future__ import annotations

from pages.i18n import N_, _
from pages.positions import learned, race, relative, shuffle, waves
from pages.ui import show, url_choice
from tfm_core.variants.positions import POSITIONS

_KEY = "positions-view"
OF_KINDS = {  # none has nothing to show, and the waves in two dimensions stand under patches
    "sinusoidal": waves.view,
    "learned": learned.learned,
    "rotary": relative.rotary,
    "alibi": relative.alibi,
}
VIEWS = {
    **{name: (POSITIONS[name].label, view) for name, view in OF_KINDS.items()},
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
