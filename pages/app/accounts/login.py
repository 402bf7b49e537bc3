"""Logging in and out, where Streamlit's secrets name a provider."""

from __future__ import annotations

import streamlit as st

from pages.app.accounts import visitors
from pages.app.typed import escape
from pages.i18n import _


def control() -> None:
    """Draw the login, or the account menu."""
    who = visitors.visitor()
    if who.name is not None:
        with st.popover(escape(who.name), icon=":material/account_circle:", key="login-account"):
            st.caption(_("Only you can change your runs."))
            st.button(_("Log out"), icon=":material/logout:", key="login-out", on_click=st.logout)
        return
    names = visitors.providers()
    if len(names) == 1:
        _button(names[0], _("Log in"))
        return
    with st.popover(_("Log in"), icon=":material/login:", key="login-menu"):
        for name in names:
            is_default = name == visitors.DEFAULT_PROVIDER
            usual = _("Log in with the usual login")
            _button(
                name,
                usual if is_default else _("Log in with {provider}", provider=name.capitalize()),
            )


def _button(name: str, label: str) -> None:
    st.button(
        escape(label),
        icon=":material/login:",
        key=f"login-{name}",
        help=_(visitors.visitor().only_watches),
        on_click=st.login,
        args=(None if name == visitors.DEFAULT_PROVIDER else name,),
    )
