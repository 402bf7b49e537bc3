"""What surrounds every page: navigation, the current run, links to share, notices."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.i18n import PAGES_DIR, _
from pages.ui import run_words, runs_access, show, state
from tfm_core.runs.run import Run

ICON = str(PAGES_DIR / "content" / "icon.svg")
LOGO = str(PAGES_DIR / "content" / "logo.svg")
_ENTRIES = (  # section, page, title, icon, url path
    ("start", "home", _("Home"), ":material/home:", ""),
    ("train", "train", _("Train"), ":material/model_training:", "train"),
    ("train", "runs", _("Runs"), ":material/stacked_line_chart:", "runs"),
    ("look", "attention", _("Attention"), ":material/visibility:", "attention"),
    ("model", "build", _("Build"), ":material/account_tree:", "build"),
    ("model", "parameters", _("Parameters"), ":material/table_chart:", "parameters"),
    ("model", "masks", _("Masks"), ":material/grid_off:", "masks"),
    ("model", "positions", _("Positions"), ":material/waves:", "positions"),
    ("model", "walk", _("Walk through"), ":material/footprint:", "walk"),
    ("learn", "words", _("Words into tensors"), ":material/text_fields:", "words"),
    ("learn", "tensors", _("Tensors by sight"), ":material/view_in_ar:", "tensors"),
    ("learn", "by-hand", _("Attention by hand"), ":material/calculate:", "by-hand"),
    ("learn", "before", _("Before the Transformer"), ":material/history:", "before"),
    ("learn", "encoders", _("Reading: encoders"), ":material/auto_stories:", "encoders"),
    ("learn", "gpt", _("Writing: GPT"), ":material/edit_note:", "gpt"),
    ("learn", "captions", _("Pictures to words"), ":material/image_search:", "captions"),
    ("learn", "training-step", _("One training step"), ":material/sync:", "training-step"),
    ("learn", "speed", _("Making it fast"), ":material/speed:", "speed"),
    ("learn", "practice", _("Good practice"), ":material/verified:", "practice"),
)
_VIEWS = (
    ("train", _("Watch it learn"), ":material/show_chart:"),
    ("attention", _("Look inside"), ":material/visibility:"),
    ("walk", _("Walk through"), ":material/footprint:"),
)
_TICK = 3.0  # seconds
_SECTIONS = {
    "start": _("Start"),
    "train": _("Train"),
    "look": _("Look inside"),
    "model": _("The model"),
    "learn": _("Learn"),
}


def navigation() -> st.Page:
    """Return the page to run; a page whose file is not there has no entry."""
    sections: dict[str, list[st.Page]] = {}
    for section, name, title, icon, url_path in _ENTRIES:
        if Path(state.PAGES[name]).is_file():
            entry = st.Page(
                state.PAGES[name],
                title=title,
                icon=icon,
                url_path=url_path or None,
                default=not url_path,
            )
            sections.setdefault(_SECTIONS[section], []).append(entry)
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
        for sentence in state.take_notices():
            st.info(sentence, icon=":material/info:")


def _current_run(run: Run, *, was_active: bool) -> None:
    status = run.status
    if was_active and not status.is_active:
        state.draw_anew()  # once: drawn anew, it no longer ticks
    with st.container(border=True, gap="xsmall"):
        st.caption(_("Current run"))
        st.markdown(f"**{run_words.escape(run.meta.name)}**")
        st.markdown(run_words.badge(status))
        if run.problem:
            st.caption(run.problem)
            return
        st.progress(status.progress)
        st.caption(f"{run_words.progress(status)} · {show.device(status.device)}")
        for name, words, icon in _VIEWS:
            query = {"run": run.id} | ({"show": "run"} if name == "walk" else {})
            if Path(state.PAGES[name]).is_file():
                st.page_link(state.PAGES[name], label=words, icon=icon, query_params=query)


def share() -> None:
    """Offer links; called behind the page, which may still change what they hold."""
    with st.sidebar, st.popover(_("Copy link"), icon=":material/link:", width="stretch"):
        run_id = state.current_run_id()
        if state.page() in state.LINKED_PAGES:
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
