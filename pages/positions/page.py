"""Positions: how a Transformer learns the order of its tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pages.i18n import _
from pages.positions import learned, race, relative, shuffle, waves
from pages.positions.link import OF_KINDS, VIEW
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.state import body

VIEWS: dict[str, Callable[[], None]] = {
    **{
        kind.name: partial(relative.added, kind)
        for kind in OF_KINDS
        if kind.inside is not None and kind.inside.by_distance is not None
    },
    "sinusoidal": waves.view,
    "learned": learned.learned,
    "rotary": relative.rotary,
    "t5-bias": relative.buckets,
    "patches": learned.patches,
    "shuffle": shuffle.view,
    "race": race.view,
}


def page() -> None:
    """Show one side of positions at a time; a link holds which."""
    show.header("positions")
    body(lambda: VIEWS[view_link.choice(_("Positions"), VIEW, is_labelled=False)]())


page()
