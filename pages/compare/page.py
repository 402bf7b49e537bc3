"""Compare: how runs differ, and the effect of it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.compare import beside, choice, curves, seeds, table
from pages.ui import show, state
from pages.ui.runs import comparison
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
        state.draw_anew()  # once: redrawn, it no longer polls
    shown = choice.styled(runs)
    grouped = seeds.groups(shown)
    styled = seeds.styled(shown, grouped)
    if was_live:
        comparison.progress(runs)
    st.fragment(curves.figure)(styled, grouped, seeds.has_bands(grouped))
    table.results(styled)
    seeds.tests(grouped)
    beside.same_example_view(seeds.one_of_each(grouped), n_runs=len(shown))


page()
