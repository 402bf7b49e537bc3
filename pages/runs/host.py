"""The host: who knows the server's key may change every run."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import state, visitors

_KEY = "runs-host-key"


def part() -> None:
    """Ask for the host's key, or say that it was shown; nothing where the server has none."""
    if not visitors.has_key():
        return
    if visitors.visitor().is_host:
        words = _("You are the host: you see all runs and can change them.")
        st.caption(f":material/key: {words}")
        return
    with st.popover(_("I am the host"), icon=":material/key:", type="tertiary"):
        st.text_input(
            _("The key of this server"),
            type="password",
            key=_KEY,
            max_chars=visitors.MAX_KEY,
            autocomplete="off",
            on_change=_show,
        )
        st.caption(_("This lasts until you reload or close the page."))


def _show() -> None:
    shown, st.session_state[_KEY] = st.session_state[_KEY], ""
    if shown and not visitors.show_key(shown.strip()):
        state.notify(_("This is not the key of this server."))
