"""The way back from the Train page to the page whose button began the run; the link keeps it."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import streamlit as st

from pages.i18n import _
from pages.ui import page_table, state, view_link

QUERY = "back"
"""What the Train page's address calls the page to go back to, with that page's own address."""

_KEPT = "way-back"
_ON_THE_WAY = {"home", "train", "runs"}  # pages from which one comes here anyhow


def from_here() -> dict[str, str]:
    """Return what the address of the Train page shall say of the page that is shown."""
    facts = page_table.at(state.page())
    if facts.name in _ON_THE_WAY:
        return {}
    own = {
        name: text
        for name, text in view_link.query().items()
        if name not in (state.RUN_QUERY, QUERY)
    }
    return {QUERY: f"{facts.name}?{urlencode(own)}" if own else facts.name}


def forget() -> None:
    """Take the way back out of the address: another run is looked at, or none."""
    view_link.put({QUERY: None})


def link(run_id: str) -> None:
    """Lead back to the page that began a run, which then shows it; nothing where none did."""
    kept: dict[str, str] = st.session_state.setdefault(_KEPT, {})
    said = view_link.query().get(QUERY)
    if said is None and run_id in kept:  # the reader was on another page meanwhile
        said = kept[run_id]
        view_link.put({QUERY: said})
    name, _mark, query = (said or "").partition("?")
    if said is None or name not in page_table.PAGES:
        return
    kept[run_id] = said
    facts = page_table.PAGES[name]
    st.page_link(
        facts.path,
        label=_("Back to {page}", page=_(facts.title)),
        icon=":material/arrow_back:",
        query_params={**dict(parse_qsl(query)), state.RUN_QUERY: run_id},
        width="content",
    )
