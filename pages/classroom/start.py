"""The start page of a class: the address and its code, large, and whether pupils can reach it."""

from __future__ import annotations

from html import escape as html
from urllib.parse import urlsplit

import streamlit as st

from pages.classroom.reached import Checked, check
from pages.classroom.reading import TICK
from pages.components.buttons import qr_code
from pages.i18n import _, ngettext, paragraph
from pages.ui import state
from tfm_core.lessons.lesson import Lesson


@st.fragment(run_every=TICK)
def start(lesson: Lesson) -> None:
    """Draw how pupils come to a lesson."""
    found = check(state.address("lessons", {"lesson": lesson.id}))
    code, words = st.columns([2, 3], vertical_alignment="center")
    with code:
        source = "" if found.reach == "local" else qr_code(found.address)
        if source:
            st.html(f'<img class="class-code" src="{source}" alt="{html(_("QR code"))}">')
    with words:
        st.markdown(_("1. Join the same network as this computer."))
        st.markdown(_("2. Scan the code, or open this address:"))
        st.html(f'<p class="class-address">{html(found.address)}</p>')
        _say(found)


def _say(found: Checked) -> None:
    n = found.n_devices
    if found.reach == "reached":
        words = ngettext("{n} device is in.", "{n} devices are in.", n, n=n)
        st.success(words, icon=":material/check_circle:")
    elif found.reach == "silent":
        st.info(paragraph("class/silent"), icon=":material/lan:")
        _others(found)
    elif found.reach == "closed":
        st.error(paragraph("class/closed"), icon=":material/link_off:")
        _others(found)
    else:
        st.error(paragraph("class/local"), icon=":material/link_off:")


def _others(found: Checked) -> None:
    if found.others:
        hosts = ", ".join(str(urlsplit(one).netloc) for one in found.others)
        st.caption(_("This computer is in other networks, too: {hosts}", hosts=hosts))
