"""The map of the path: every page that teaches, by chapter, with its goal and its tick."""

from __future__ import annotations

import streamlit as st

from pages.app.navigation import ticks
from pages.app.navigation.page_table import CHAPTERS, WAY
from pages.i18n import _


def draw() -> None:
    st.header(_("What you can learn"), anchor=False)
    if n := ticks.done():
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(_("{n} of {all} done", n=n, all=len(WAY)), width="content")
            st.button(_("Reset"), key="reset-ticks", type="tertiary", on_click=ticks.reset)
    with st.container(key="page-map"):
        for number, (column, (chapter, title)) in enumerate(
            zip(st.columns(len(CHAPTERS)), CHAPTERS.items(), strict=True), start=1
        ):
            with column, st.container(gap="xsmall"):
                st.subheader(f"{number} · {_(title)}", anchor=False)
                for page in WAY:
                    if page.chapter == chapter:
                        goal = _("{goal} · {n}\u00a0min", goal=_(page.goal), n=page.minutes)
                        tick = "✓ " if ticks.is_done(page) else ""
                        label = f"**{tick}{_(page.title)}** {goal}"  # one element is faster
                        st.page_link(page.path, label=label)
