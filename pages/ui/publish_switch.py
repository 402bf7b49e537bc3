"""Publish a run: an address at which anybody may watch, who can see what, and the end of it."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from pages.components import reach
from pages.components.copy_link import Link, copy_link
from pages.i18n import N_, _
from pages.ui import publisher, run_actions, show, state, visitors
from pages.ui.run_dialog import RunDialog
from pages.ui.typed import escape
from tfm_core.runs import settings
from tfm_core.runs.run import Run


def button(run: Run, *, key: str, width: Literal["content", "stretch"] = "content") -> None:
    """Draw the button that opens what publishes a run, for who may; else nothing."""
    if settings.read().max_published == 0 or not visitors.visitor().may_change(run):
        return
    label = _("Publish")
    if st.button(
        label if width == "content" else f"{label} :gray[{escape(run.meta.name)}]",
        key=key,
        icon=":material/podcasts:",
        help=_("A public address where others can watch this run."),
        width=width,
        on_click=DIALOG.ask,  # a press is heard also where the page is drawn anew just then
        args=(run.id,),
    ):
        st.rerun()


def _panel(run: Run) -> None:
    """Say what publishing is, or show where the run is; then the press that changes it."""
    path = publisher.address(run.id)
    if path is None:
        st.markdown(
            _(
                "Gives **{name}** an unguessable address: a page that replays the training and "
                "follows it live. A thousand people can watch, because it needs no session of "
                "this app.",
                name=escape(run.meta.name),
            )
        )
    else:
        _address(run, state.address(path, {}))
    st.caption(
        _(
            "Anyone with the address sees this run’s name, settings, curves, examples, answers "
            "and heads, and nothing else in this app. Unpublish ends that; pages that are open "
            "keep what they have loaded."
        )
    )
    if path is None:
        pressed = st.button(
            _("Publish"), key="publish-on", icon=":material/podcasts:", type="primary"
        )
        change = run_actions.publish
    else:
        pressed = st.button(_("Unpublish"), key="publish-off", icon=":material/public_off:")
        change = run_actions.unpublish
    if not pressed:
        return
    try:
        change(run)
    except (ValueError, OSError) as error:
        show.problem(error)
    else:
        st.rerun(scope="fragment")


def _address(run: Run, href: str) -> None:
    """Show the address: to copy, as a code, and to open."""
    others = reach.for_others(href)
    st.code(others or href, language=None, wrap_lines=True)
    if others is None:
        st.warning(reach.note(href), icon=":material/lan:")
    with st.container(horizontal=True, vertical_alignment="center"):
        opens = _("Shows this run to anyone with the address.")
        copy_link(
            [Link(_("the published page"), opens, others or href)], key=f"publish-link-{run.id}"
        )
        st.link_button(_("Open"), href, icon=":material/open_in_new:")


DIALOG = RunDialog("publish", N_("Publish"), ":material/podcasts:", _panel, "medium")
"""Drawn by the pages whose runs have the button."""
