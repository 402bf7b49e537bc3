"""Compare: any number of runs together, what differs between them, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.compare import beside, choice, curves, seeds, table
from pages.ui import comparison, show, state
from tfm_core.runs.run import Run


def page() -> None:
    show.header("compare")
    runs = choice.chosen()
    if not runs:
        return
    is_live = comparison.is_live(runs)
    st.fragment(_draw, run_every=comparison.TICK if is_live else None)(runs, is_live)


def _draw(runs: Sequence[Run], was_live: bool) -> None:
    if was_live and not comparison.is_live(runs):
        state.draw_anew()  # once: drawn anew, it no longer ticks
    shown = choice.drawn(runs)
    found = seeds.groups(shown)
    looks = seeds.looks(shown, found)
    if was_live:
        comparison.progress(runs)
    st.fragment(curves.part)(looks, found, seeds.has_bands(found))
    table.part(looks)
    seeds.part(found)
    beside.part(seeds.one_of_each(found), n_runs=len(shown))


page()
