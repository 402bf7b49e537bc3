"""Addresses of this app: its base path in the browser, and which addresses others can open."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from pages.i18n import _
from pages.server.streamlit_internals import get_internal_ip

_ROOT = "served_root"


def keep_root(url_path: str) -> None:
    """Remember the path before a page's own in the browser's address.

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


def hosts() -> list[str]:
    """Return the host names that the server listens on."""
    chosen = st.get_option("server.address")
    is_open = chosen in (None, "", "0.0.0.0", "::")
    return [host for host in (["localhost", get_internal_ip()] if is_open else [chosen]) if host]


def is_local(address: str) -> bool:
    """Return whether an address works on this computer only."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified


def for_others(address: str) -> str | None:
    """Return an address that others can open, or None if there is none.

    None where the server listens on this computer only.
    """
    if not is_local(address):
        return address
    parts = urlsplit(address)
    port = f":{parts.port}" if parts.port else ""
    for host in hosts():
        name = f"[{host}]" if ":" in host else host
        found = urlunsplit(parts._replace(netloc=f"{name}{port}"))
        if not is_local(found):
            return found
    return None


def local_note(address: str) -> str:
    """Return a note on an address that others cannot open, else ""."""
    if not is_local(address):
        return ""
    other = for_others(address)
    if other is None:
        return _(
            "Only this computer can open it. To share, start the app with --server.address 0.0.0.0."
        )
    return _("Only this computer can open it. Others in your network use {address}", address=other)
