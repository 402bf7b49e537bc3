"""Class: how pupils come in, everybody's runs of a lesson, and their answers."""

from __future__ import annotations

from dataclasses import replace
from html import escape as html

import streamlit as st

from pages.classroom import progress, reset
from pages.classroom.link import LESSON, VIEW
from pages.components import addresses
from pages.components.buttons import qr_code
from pages.i18n import _, language, paragraph
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.lessons import pupils, teacher
from tfm_core.lessons import catalogue, results
from tfm_core.lessons.lesson import Lesson


def classroom() -> None:
    lessons = catalogue.catalogue().lessons
    titles = {name: one.words(language()).title for name, one in lessons.items()}
    names = tuple(titles)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="class-bar"):
        chosen = view_link.listed(
            _("Lesson"), replace(LESSON, first=names[0], names=names, labels=titles)
        )
        view = view_link.choice(_("View"), VIEW, is_labelled=False)
        is_named = view == "runs" and st.toggle(_("Names"), value=True, key="class-names")
        reset.control()
    lesson = lessons[chosen]
    pupils.classes().look(lesson.id)
    if view == "start":
        ways_in(lesson)
    elif view == "runs":
        progress.runs(lesson, is_named=is_named)
    else:
        progress.answers(lesson)


def ways_in(lesson: Lesson) -> None:
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


show.header("class")
if teacher.is_teacher():
    classroom()
else:
    results.server_key()  # made when it is first needed
    st.info(paragraph("class/needs-key"), icon=":material/key:")
    teacher.key_field()
