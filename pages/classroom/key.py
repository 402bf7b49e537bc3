"""The teacher's key: what the page needs, and where it comes from."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui.accounts import visitors
from tfm_core.runs import settings


def needs_key() -> None:
    """Say what the page needs, and take the key where the server has one."""
    if settings.read().host_key is None:
        st.info(paragraph("class/no-key"), icon=":material/key:")
        return
    st.info(paragraph("class/needs-key"), icon=":material/key:")
    visitors.key_field(_("Teacher’s key"), key="class-key")
