"""The teacher's key: what the page needs, and where it comes from."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import state
from pages.ui.accounts import visitors
from tfm_core.runs import settings

_FIELD = "class-key"


def needs_key() -> None:
    """Say what the page needs, and take the key where the server has one."""
    if settings.read().host_key is None:
        st.info(paragraph("class/no-key"), icon=":material/key:")
        return
    st.info(paragraph("class/needs-key"), icon=":material/key:")
    st.text_input(
        _("Teacher’s key"),
        type="password",
        key=_FIELD,
        max_chars=visitors.MAX_KEY,
        autocomplete="off",
        on_change=_show,
    )


def _show() -> None:
    shown, st.session_state[_FIELD] = st.session_state[_FIELD], ""
    if shown and not visitors.show_key(shown.strip()):
        state.notify(_("Wrong key."))
