"""Publish a run: an address at which anybody may watch, who can see what, and the end of it."""

from __future__ import annotations

import streamlit as st

from pages.components.copy_link import Link, copy_link
from pages.i18n import _
from pages.ui import publisher, show, state, visitors
from tfm_core.runs import settings
from tfm_core.runs.run import Run


def row(run: Run) -> None:
    """Draw what publishes a run, for who may change it."""
    may = settings.read().max_published > 0 and visitors.visitor().may_change(run)
    if run.problem is not None or not may:
        return
    with st.container(border=True, key="publish"):
        path = publisher.address(run.id)
        words, place = st.columns([5, 2], vertical_alignment="center")
        with words, st.container(gap="xxsmall"):
            st.markdown(f":material/podcasts: **{_('A page that others watch')}**")
            st.caption(_explained(path is not None))
        with place:
            if path is None:
                _publish_button(run)
            else:
                _unpublish_button(run)
        if path is not None:
            _address(run, state.address(path, {}))


def _explained(is_published: bool) -> str:
    if is_published:
        return _(
            "Whoever has the address sees this run’s name, settings, curves, examples, answers and "
            "heads, now and as it goes on, and nothing else of this app. Unpublished, the address "
            "answers nobody."
        )
    return _(
        "Gives this run an address of its own, which nobody can guess: a page that plays it, and "
        "moves on while it trains. It opens no session, so a thousand may watch."
    )


def _publish_button(run: Run) -> None:
    """Publish the run where it is pressed, or say why that cannot be."""
    if not st.button(_("Publish"), key="publish-on", icon=":material/podcasts:", width="stretch"):
        return
    try:
        visitors.visitor().check(run)
        publisher.publish(run.id)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    st.rerun(scope="fragment")


def _unpublish_button(run: Run) -> None:
    if st.button(_("Unpublish"), key="publish-off", icon=":material/public_off:", width="stretch"):
        publisher.unpublish(run.id)
        st.rerun(scope="fragment")


def _address(run: Run, href: str) -> None:
    """Show the address: to copy, as a code, and to open."""
    with st.container(horizontal=True, vertical_alignment="center"):
        opens = _("Shows this run to anybody who has the address.")
        copy_link([Link(_("the published page"), opens, href)], key=f"publish-link-{run.id}")
        st.link_button(_("Open"), href, icon=":material/open_in_new:")
    st.code(href, language=None, wrap_lines=True)
