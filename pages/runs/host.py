"""The host: whoever knows the server's key may change every run."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import visitors

_KEY = "runs-host-key"


def part() -> None:
    if not visitors.has_key():
        return
    if visitors.visitor().is_host:
        words = _("You are the host: you can change all runs.")
        st.caption(f":material/key: {words}")
        return
    with st.popover(_("Sign in as host"), icon=":material/key:", type="tertiary"):
        st.text_input(
            _("Server key"),
            type="password",
            key=_KEY,
            max_chars=visitors.MAX_KEY,
            autocomplete="off",
            on_change=_show,
        )
        st.caption(_("Lasts until you reload or close the page."))


def _show() -> None:
    shown, st.session_state[_KEY] = st.session_state[_KEY], ""
    if shown and not visitors.show_key(shown.strip()):
        state.notify(_("Wrong server key."))
