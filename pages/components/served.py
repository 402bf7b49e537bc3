"""Where the browser finds what the app serves beside its pages: vendors' scripts."""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st

_ROOT = "served_root"


def keep_root(url_path: str) -> None:
    """Remember what comes before a page's own path in the address that the browser shows.

    Only the browser's address has the prefix of a proxy that takes it away before it asks us.
    url_path: of the page that is shown; Home is ``""``.
    """
    if st.context.url:
        path = urlsplit(st.context.url).path.removesuffix("/")
        st.session_state[_ROOT] = path.removesuffix(f"/{url_path}") if url_path else path


def root() -> str:
    """Return the path that the app is served below, such as ``"/some/base"``, or ``""``."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return str(st.session_state.get(_ROOT, f"/{base}" if base else ""))
