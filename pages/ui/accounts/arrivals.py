"""Which devices have reached the server, and by which address: what a teacher's check goes by.

Kept in memory, for as long as the server runs, and only what the check needs: the name in the Host
header, the hash of the browser's token, and whether another device asked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import psutil
import streamlit as st

from pages.ui.accounts import visitors

MAX_HOSTS, MAX_BROWSERS = 50, 2000


class Arrivals:
    """The browsers of other devices, by the host name under which they asked. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._browsers: OrderedDict[str, set[str]] = OrderedDict()

    def note(self, host: str, browser: str) -> None:
        """Note that the browser of another device asked for a page under a host name."""
        with self._lock:
            known = self._browsers.setdefault(host, set())
            self._browsers.move_to_end(host)
            if len(known) < MAX_BROWSERS:
                known.add(browser)
            while len(self._browsers) > MAX_HOSTS:
                self._browsers.popitem(last=False)

    def count(self, host: str) -> int:
        """Return how many browsers of other devices have come by a host name."""
        with self._lock:
            return len(self._browsers.get(host, ()))


def note() -> None:
    """Note who asks for the page that is being drawn, if it is another device."""
    host = _host_name(_header("Host"))
    if host and _is_another_device():
        arrivals().note(host, visitors.browser())


def _is_another_device() -> bool:
    forwarded = _header("X-Forwarded-For").partition(",")[0].strip()
    asks_from = forwarded or st.context.ip_address or ""  # Streamlit says none for this computer
    return bool(asks_from) and asks_from not in own_addresses()


def _header(name: str) -> str:
    value = st.context.headers.get(name)
    return value if isinstance(value, str) else ""


def _host_name(host: str) -> str:
    """Return the name in a Host header in lower case, without its port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def own_addresses() -> frozenset[str]:
    """Return the addresses of this computer's network interfaces, loopback included."""
    found = (one.address for many in psutil.net_if_addrs().values() for one in many)
    return frozenset(address.partition("%")[0].lower() for address in found)


@st.cache_resource(show_spinner=False)
def arrivals() -> Arrivals:
    return Arrivals()
