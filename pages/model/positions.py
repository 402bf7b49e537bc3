"""Positions: how a Transformer, which sees a set, is told the order."""

from __future__ import annotations

import streamlit as st

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
    linked.renamed(_KEY, "view", {name: label for name, (label, _view) in VIEWS.items()})
    unknown = linked.read(_KEY, "view", list(VIEWS), "sinusoidal")
    picked = st.segmented_control(
        _("Positions"),
        list(VIEWS),
        format_func=lambda name: VIEWS[name][0],
        required=True,
        key=_KEY,
        persist_state="session",
        wrap=True,
        label_visibility="collapsed",
    )
    linked.warn(unknown)
    chosen = picked if picked in VIEWS else "sinusoidal"
    linked.say(_KEY, "view", chosen)
    VIEWS[chosen][1]()


page()
