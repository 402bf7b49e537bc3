"""Below the maps: what can be asked of them, one question at a time."""

from __future__ import annotations

import streamlit as st

from pages.components.film import Film
from pages.ui import (
    look_alignment,
    look_compare,
    look_controls,
    look_explain,
    look_heads,
    look_positions,
    look_take,
)
from pages.ui import selection as chosen
from pages.ui.selection_link import Offer, Selection
from pages.ui.words import _
from tfm_core.inspect import alignment
from tfm_core.inspect.example import Example
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import Probe


def deeper(
    run: Run,
    probe: Probe,
    example: Example,
    selection: Selection,
    offer: Offer,
    *,
    top: float | None,
    film: Film | None,
) -> None:
    """Offer the questions that fit this run, and answer the chosen one."""
    names = _questions(run, probe, example, offer)
    asked = selection.deeper if selection.deeper in names else ""
    st.header(_("Look deeper"), anchor=False)
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
    elif asked == "explain":
        look_explain.explanations(run, example)
    elif asked == "positions":
        look_positions.positions(run, offer.steps, step)
    elif asked == "compare":
        look_compare.side_by_side(run, probe, example, selection, offer)
    elif asked == "take":
        look_take.take_away(run, example, selection, top=top, film=film, step=step)


def _questions(run: Run, probe: Probe, example: Example, offer: Offer) -> dict[str, str]:
    names = {}
    if offer.steps:
        names["heads"] = _("What heads do")
        if alignment.can_be_scored(run.experiment, probe):
            names["alignment"] = _("Which head aligns")
    if example.probabilities is not None:
        names["explain"] = _("What explains the answer")
    if offer.steps and look_positions.are_learned(run.experiment):
        names["positions"] = _("What positions learn")
    return {**names, "compare": _("Compare two"), "take": _("Take it away")}
