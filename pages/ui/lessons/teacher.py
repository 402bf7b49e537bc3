"""The teacher of a class: whoever has shown the server's key of lessons in this session."""

from __future__ import annotations

from hmac import compare_digest

import streamlit as st

from pages.i18n import _
from pages.ui import state
from tfm_core.lessons.results import server_key

_MAX_KEY = 200
_HAS_SHOWN_KEY = "has_shown_key"
_FIELD = "class-key"


def is_teacher() -> bool:
    return bool(st.session_state.get(_HAS_SHOWN_KEY))


def key_field() -> None:
    """Draw the field that takes the key."""
    st.text_input(
        _("Teacher’s key"),
        type="password",
        key=_FIELD,
        max_chars=_MAX_KEY,
        autocomplete="off",
        on_change=_take_key,
    )


def _take_key() -> None:
    shown, st.session_state[_FIELD] = st.session_state[_FIELD].strip(), ""
    if compare_digest(shown.encode(errors="replace"), server_key()):
        st.session_state[_HAS_SHOWN_KEY] = True
    elif shown:
        state.notify(_("Wrong key."))
