"""What surrounds every page: navigation, the current run, links to share, notices."""

from __future__ import annotations

import streamlit as st

from pages.i18n import PAGES_DIR, _
from pages.ui import page_table, run_words, runs_access, show, state, typed
from pages.ui.typed import escape
from tfm_core.runs.run import Run

ICON = str(PAGES_DIR / "content" / "icon.svg")
LOGO = str(PAGES_DIR / "content" / "logo.svg")
_TICK = 3.0  # seconds


def navigation() -> st.Page:
    """Return the page to run."""
    sections: dict[str, list[st.Page]] = {}
    for facts in page_table.PAGES.values():
        entry = st.Page(
            facts.path,
            title=_(facts.title),
            icon=facts.icon,
            url_path=facts.url_path or None,
            default=not facts.url_path,
        )
        sections.setdefault(_(page_table.SECTIONS[facts.section]), []).append(entry)
    page = st.navigation(sections, expanded=True)
    state.set_page(page.url_path)
    return page


def sidebar() -> None:
    """Show the logo and the current run."""
    st.logo(LOGO, icon_image=ICON, size="large")
    state.keep_run_in_link()
    run_id = state.current_run_id()
    with st.sidebar:
        if run_id is not None:
            run = runs_access.store().get(run_id)
            is_active = run.status.is_active
            ticks = _TICK if is_active else None
            st.fragment(_current_run, run_every=ticks)(run, was_active=is_active)


def notices() -> None:
    """Say what the last press did, and what in the link could not be followed.

    They have a place of their own, empty or not: without it the page below would move when they
    go, and the browser would make its open lists and half-typed fields anew.
    """
    with st.container():
        unknown = state.unknown_run_in_link()
        if unknown is not None:
            st.warning(
                _("The link asks for a run that is not here; it may have been deleted."),
                icon=":material/link_off:",
            )
        for sentence in typed.let_go():
            st.warning(sentence, icon=":material/content_cut:")
        for sentence in state.take_notices():
            st.info(escape(sentence), icon=":material/info:")


def _current_run(run: Run, *, was_active: bool) -> None:
    status = run.status
    if was_active and not status.is_active:
        state.draw_anew()  # once: drawn anew, it no longer ticks
    with st.container(border=True, gap="xsmall"):
        st.caption(_("Current run"))
        st.markdown(f"**{escape(run.meta.name)}**")
        st.markdown(run_words.badge(status))
        if run.problem:
            st.caption(escape(_(run.problem)))
            return
        st.progress(status.progress)
        st.caption(f"{run_words.progress(status)} · {show.device(status.device)}")
        for facts in page_table.PAGES.values():
            if facts.follows_run:
                query = {"run": run.id} | ({"show": "run"} if facts.name == "walk" else {})
                label = _(facts.follows_run)
                st.page_link(facts.path, label=label, icon=facts.icon, query_params=query)


def share() -> None:
    """Offer links; called behind the page, which may still change what they hold."""
    with st.sidebar, st.popover(_("Copy link"), icon=":material/link:", width="stretch"):
        page = page_table.at(state.page())
        run_id = state.current_run_id()
        if page.has_view and (run_id is None or not page.shows_run):
            st.caption(_("Opens this page as it is."))
            st.code(state.page_link(), language=None, wrap_lines=True)
        if run_id is not None:
            st.caption(_("Opens this run, for anyone who can reach this app."))
            st.code(state.run_link(run_id), language=None, wrap_lines=True)
        st.caption(_("Opens the Train page with the configuration as it is set there."))
        st.code(state.configuration_link(), language=None, wrap_lines=True)
        if state.has_pasted_text():
            st.caption(
                _(
                    "The text you pasted is not in this link: whoever follows it gets the text "
                    "that comes with the app. A link to the run, or its file, holds it."
                )
            )
    st.sidebar.caption(_("Light or dark? In the menu ⋮ at the top right."))
