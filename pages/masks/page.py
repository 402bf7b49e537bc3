"""Masks: which query may attend to which key, and what that does to scores, weights, output."""

from __future__ import annotations

import streamlit as st

from pages.i18n import N_, _
from pages.masks import controls, lab, traps
from pages.masks.controls import MaskChoice
from pages.ui import show
from pages.ui.fact_line import fact_line
from pages.ui.state import body
from tfm_core.inspect.masks.lab import Projected

SECTIONS = {
    "axis": N_("Wrong axis"),
    "float": N_("Float mask"),
    "precision": N_("Half precision"),
    "blind": N_("Nothing allowed"),
    "code": N_("Code"),
}


def page() -> None:
    """Ask for a mask and tokens; show what becomes of the scores, a trap, and the code."""
    show.header("masks")
    body(_choose)


def _choose() -> None:
    kind = controls.kind()
    facts, choices = fact_line("masks")
    try:
        choice = controls.choice(kind, choices)
    except ValueError as error:
        show.problem(error)
        return
    # a fragment: a click on the mask draws only what it changes
    st.fragment(_lab)(choice, controls.projected(choice, facts, choices))


def _lab(choice: MaskChoice, projected: Projected) -> None:
    flow = lab.maps(choice, projected)
    section = st.segmented_control(
        _("Traps and code"),
        list(SECTIONS),
        format_func=lambda name: _(SECTIONS[name]),
        default="axis",
        required=True,
        key="masks-section",
        persist_state="session",
        wrap=True,
    )
    if section == "precision":
        traps.half_precision(projected, flow)
    elif section == "float":
        traps.float_mask(projected, flow)
    elif section == "blind":
        traps.blind_row(projected, flow)
    elif section == "code":
        was_clicked = bool(lab.clicked(choice, projected))
        traps.code(choice, projected, flow, was_clicked=was_clicked)
    else:
        rest = lab.without_padding(choice, projected)
        traps.wrong_axis(choice, projected, rest, lab.clicked(choice, projected))


page()
