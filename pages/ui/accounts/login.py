"""Logging in and out, and the way back to the page.

Streamlit returns to Home in a new session, so the page and draft of a visitor are kept meanwhile,
by the token of the browser.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import login_setup, visitors
from pages.ui.address import view_link
from pages.ui.navigation import page_table
from pages.ui.settings.drafts import Values
from pages.ui.typed import escape
from tfm_core.runs import settings
from tfm_core.sentences import StudentError

MAX_LEFT = 200
"""Visitors whose way back is kept at once: a configuration may hold a text."""

_MINUTES = 15
_HAS_ARRIVED = "login_has_arrived"


@dataclass(frozen=True, slots=True)
class _Left:
    """Where a visitor was before logging in. at: monotonic seconds."""

    at: float
    url_path: str
    query: Mapping[str, str]
    draft: Values


def is_shut() -> bool:
    """Return whether this visitor must log in to see anything."""
    if not login_setup.read() or not settings.read().login_to_watch:
        return False
    who = visitors.visitor()
    return who.name is None and not who.is_host


def door() -> None:
    """Draw the login in place of the page."""
    with st.container(border=True, horizontal_alignment="center", gap="medium", key="login-door"):
        st.title(_("Log in to watch"), anchor=False, width="content")
        st.markdown(_("This server shows its runs to users only."), width="content")
        with st.container(horizontal=True, horizontal_alignment="center"):
            _buttons("door")


def control() -> None:
    """Draw the login, or the account menu."""
    who = visitors.visitor()
    if who.name is None:
        _log_in()
        return
    with st.popover(escape(who.name), icon=":material/account_circle:", key="login-account"):
        email = st.user.to_dict().get("email")
        st.markdown(f"**{escape(who.name)}**" + (f"  \n{escape(str(email))}" if email else ""))
        st.caption(escape(_rights()))
        st.button(_("Log out"), icon=":material/logout:", key="login-out", on_click=st.logout)


def come_back(url_path: str) -> None:
    """Return a visitor who just logged in to where they were. Call it before drawing a page."""
    if login_setup.read() is None or _HAS_ARRIVED in st.session_state:
        return
    st.session_state[_HAS_ARRIVED] = True
    if url_path or view_link.query():
        return
    origin = _ways().pop(visitors.browser(), None)
    if origin is None or time.monotonic() - origin.at > 60 * _MINUTES:
        return
    state.set_draft(origin.draft)
    if visitors.visitor().name is None:
        state.notify(_("Login was cancelled or refused by the provider."))
    st.switch_page(page_table.at(origin.url_path).path, query_params=dict(origin.query))


def _rights() -> str:
    who = visitors.visitor()
    if who.is_host:
        return _("You are an admin: you can change everyone’s runs.")
    return _(who.only_watches) or _("Only you and admins can change your runs.")


def _log_in() -> None:
    setup = login_setup.read()
    assert setup is not None
    if len(setup.providers) == 1:
        _buttons("strip")
        return
    with st.popover(_("Log in"), icon=":material/login:", key="login-menu"):
        _buttons("strip")


def _buttons(key: str) -> None:
    setup = login_setup.read()
    assert setup is not None
    for name in setup.providers:
        words = _("Log in")
        if len(setup.providers) > 1 and name == login_setup.DEFAULT:
            words = _("Log in with the usual login")
        elif len(setup.providers) > 1:
            words = _("Log in with {provider}", provider=name.capitalize())
        st.button(
            escape(words),
            icon=":material/login:",
            key=f"login-{key}-{name}",
            help=None if key == "door" else _(visitors.visitor().only_watches) or None,
            on_click=partial(_begin, name),
        )


def _begin(provider: str) -> None:
    """Send the browser to a provider, or show why not."""
    try:
        login_setup.check_reachable(provider)
    except StudentError as error:
        state.notify(_(error))
        return
    ways = _ways()
    while len(ways) >= MAX_LEFT:
        ways.pop(next(iter(ways)), None)
    ways[visitors.browser()] = _Left(
        time.monotonic(), state.page(), view_link.query(), state.draft()
    )
    st.login(None if provider == login_setup.DEFAULT else provider)


@st.cache_resource(show_spinner=False)
def _ways() -> dict[str, _Left]:
    """Return where visitors who are logging in were, by the hash of the browser's token."""
    return {}
