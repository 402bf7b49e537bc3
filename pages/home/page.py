"""Home: a recorded training, next steps, presets, recent runs and the page map."""

import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.navigation import ticks
from pages.app.navigation.page_table import CHAPTERS, WAY
from pages.app.runs import run_list
from pages.home import hero, preset_list
from pages.i18n import _


def all_pages() -> None:
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


RECENT = 3

show.header("home")
hero.film()
hero.doors()
hero.digit()
st.fragment(preset_list.presets)()  # a press redraws only this part

runs = visitors.listed()
if runs:
    st.header(_("Recent runs"), anchor=False)
    for run in runs[:RECENT]:
        run_list.row(run, menu=False)
if len(runs) > RECENT:
    show.link("runs", _("All {n} runs", n=len(runs)))

all_pages()
