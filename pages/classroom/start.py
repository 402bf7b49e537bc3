"""The start page of a class: the address and its code, large."""

from __future__ import annotations

from html import escape as html

import streamlit as st

from pages.components import addresses
from pages.components.buttons import qr_code
from pages.i18n import _, paragraph
from pages.ui import state
from tfm_core.lessons.lesson import Lesson


def start(lesson: Lesson) -> None:
    """Draw how pupils come to a lesson."""
    here = state.address("lessons", {"lesson": lesson.id})
    address = addresses.for_others(here)
    code, words = st.columns([2, 3], vertical_alignment="center")
    with code:
        source = "" if address is None else qr_code(address)
        if source:
            st.html(f'<img class="class-code" src="{source}" alt="{html(_("QR code"))}">')
    with words:
        st.markdown(_("1. Join the same network as this computer."))
        st.markdown(_("2. Scan the code, or open this address:"))
        st.html(f'<p class="class-address">{html(address or here)}</p>')
        if address is None:
            st.error(paragraph("class/local"), icon=":material/link_off:")
        else:
            st.info(paragraph("class/phone"), icon=":material/lan:")
