"""Below the maps: what can be asked of them, one question at a time."""

from __future__ import annotations

import streamlit as st

from pages.ui import look_alignment, look_controls, look_heads
from pages.ui import selection as chosen
from pages.ui.selection_link import Offer, Selection
from pages.ui.words import _
from tfm_core.inspect import alignment
from tfm_core.inspect.example import Example
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import Probe


def deeper(run: Run, probe: Probe, example: Example, selection: Selection, offer: Offer) -> None:
    """Offer the questions that fit this run, and answer the chosen one."""
    names = _questions(run, probe, offer)
    asked = selection.deeper if selection.deeper in names else ""
    st.subheader(_("Look deeper"), anchor=False)
    look_controls.segments(
        _("Look deeper"),
        names,
        asked or None,
        "deeper",
        lambda name: chosen.choose(run.id, deeper=name),
        label_visibility="collapsed",
    )
    step = example.step if selection.example is not None else max(offer.steps, default=0)
    if asked == "heads":
        look_heads.table(run, selection, offer, step)
    elif asked == "alignment":
        look_alignment.scores(run, selection, step)


def _questions(run: Run, probe: Probe, offer: Offer) -> dict[str, str]:
    names = {}
    if offer.steps:
        names["heads"] = _("What heads do")
        if alignment.can_be_scored(run.experiment, probe):
            names["alignment"] = _("Which head aligns")
    return names
