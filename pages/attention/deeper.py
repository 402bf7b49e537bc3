"""Below the maps: what can be asked of them, one question at a time."""

from __future__ import annotations

import streamlit as st

from pages.attention import alignment as look_alignment
from pages.attention import compare, controls, explain, heads, positions, take
from pages.attention import selection as chosen
from pages.attention.selection_link import Offer, Selection
from pages.components.animation import SnapshotAnimation
from pages.i18n import _
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.example import Example
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run


def deeper(
    run: Run,
    probe: Probe,
    example: Example,
    selection: Selection,
    offer: Offer,
    *,
    top: float | None,
    animation: SnapshotAnimation | None,
) -> None:
    """Offer the questions that fit this run, and answer the chosen one."""
    names = _questions(run, probe, example, offer)
    asked = selection.deeper if selection.deeper in names else ""
    st.header(_("Look deeper"), anchor=False)
    controls.segments(
        _("Look deeper"),
        names,
        asked or None,
        "deeper",
        lambda name: chosen.choose(run.id, deeper=name),
        label_visibility="collapsed",
    )
    step = example.step if selection.example is not None else max(offer.steps, default=0)
    if asked == "heads":
        heads.table(run, selection, offer, step)
    elif asked == "alignment":
        look_alignment.scores(run, selection, step)
    elif asked == "explain":
        explain.explanations(run, example)
    elif asked == "positions":
        positions.positions(run, offer.steps, step)
    elif asked == "compare":
        compare.side_by_side(run, probe, example, selection, offer)
    elif asked == "take":
        take.take_away(run, example, selection, top=top, animation=animation, step=step)


def _questions(run: Run, probe: Probe, example: Example, offer: Offer) -> dict[str, str]:
    names = {}
    if offer.steps:
        names["heads"] = _("What heads do")
        if alignment.can_be_scored(run.experiment, probe):
            names["alignment"] = _("Which head aligns")
    if example.probabilities is not None:
        names["explain"] = _("What explains the answer")
    if offer.steps and positions.are_learned(run.experiment):
        names["positions"] = _("What positions learn")
    return {**names, "compare": _("Compare two"), "take": _("Take it away")}
