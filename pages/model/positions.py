"""Positions: how a Transformer, which sees a set, is told the order."""

from __future__ import annotations

import streamlit as st

from pages.ui import (
    positions_learned,
    positions_race,
    positions_relative,
    positions_shuffle,
    positions_waves,
    show,
)
from pages.ui.words import _

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
    picked = st.segmented_control(
        _("Positions"),
        list(VIEWS),
        format_func=lambda name: VIEWS[name][0],
        default="sinusoidal",
        required=True,
        key="positions-view",
        bind="query-params",
        wrap=True,
        label_visibility="collapsed",
    )
    VIEWS[picked if picked in VIEWS else "sinusoidal"][1]()


page()
