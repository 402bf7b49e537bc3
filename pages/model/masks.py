"""Masks: which query may attend to which key, and what that does to scores, weights, output."""

from __future__ import annotations

import streamlit as st

from pages.ui import masks_code, masks_controls, masks_lab, masks_traps, show
from pages.ui.words import _


def page() -> None:
    """Ask for a mask and tokens, show what becomes of the scores, then the traps."""
    show.header("masks")
    kind = masks_controls.kind()
    try:
        choice = masks_controls.choice(kind)
    except ValueError as error:
        show.problem(str(error))
        return
    projected = masks_controls.projected(choice)
    flow = masks_lab.maps(choice, projected)
    axis, precision, blind, code = st.tabs(
        [
            _("Trap: the wrong axis"),
            _("Trap: half precision"),
            _("Trap: nothing allowed"),
            _("Bool, additive, and code"),
        ]
    )
    with axis:
        masks_traps.wrong_axis(projected)
    with precision:
        masks_traps.half_precision(projected)
    with blind:
        masks_traps.blind_row(projected, flow)
    with code:
        masks_code.code(
            choice, projected, flow, was_clicked=masks_lab.was_clicked(choice, projected)
        )


page()
