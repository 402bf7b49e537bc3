"""Class: how pupils come in, everybody's runs of a lesson, and their answers."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.classroom import progress, reset, start
from pages.classroom.link import LESSON, VIEW
from pages.i18n import _, language, paragraph
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.lessons import pupils, teacher
from tfm_core.lessons import catalogue, results


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
        start.start(lesson)
    elif view == "runs":
        progress.runs(lesson, is_named=is_named)
    else:
        progress.answers(lesson)


show.header("class")
if teacher.is_teacher():
    classroom()
else:
    results.server_key()  # made when it is first needed
    st.info(paragraph("class/needs-key"), icon=":material/key:")
    teacher.key_field()
