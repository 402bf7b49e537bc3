"""Masks: which query may attend to which key, and what that does to scores, weights, output."""

from __future__ import annotations

import streamlit as st

from pages.ui import masks_code, masks_controls, masks_lab, masks_traps, show
from pages.ui.masks_controls import Choice
from pages.ui.words import _
from tfm_core.inspect.mask_lab import Projected

SECTIONS = {
    "axis": _("Trap: the wrong axis"),
    "precision": _("Trap: half precision"),
    "blind": _("Trap: nothing allowed"),
    "code": _("Bool, additive, and code"),
}


def page() -> None:
    """Ask for a mask and tokens; show what becomes of the scores, a trap, and the code."""
    show.header("masks")
    kind = masks_controls.kind()
    try:
        choice = masks_controls.choice(kind)
    except ValueError as error:
        show.problem(str(error))
        return
    # a fragment: a click on the mask draws only what it changes
    st.fragment(_lab)(choice, masks_controls.projected(choice))


def _lab(choice: Choice, projected: Projected) -> None:
    flow = masks_lab.maps(choice, projected)
    section = st.segmented_control(
        _("What goes wrong, and how to write it"),
        list(SECTIONS),
        format_func=SECTIONS.__getitem__,
        default="axis",
        required=True,
        key="masks-section",
        persist_state="session",
        wrap=True,
    )
    if section == "precision":
        masks_traps.half_precision(projected)
    elif section == "blind":
        masks_traps.blind_row(projected, flow)
    elif section == "code":
        was_clicked = masks_lab.was_clicked(choice, projected)
        masks_code.code(choice, projected, flow, was_clicked=was_clicked)
    else:
        masks_traps.wrong_axis(projected)


page()
