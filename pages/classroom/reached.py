"""Whether pupils can reach the server: what tells a firewall from a wrong address."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

from pages.components import addresses
from pages.ui.accounts.arrivals import arrivals

Reach = Literal["reached", "silent", "closed", "local"]
"""reached: other devices have come. silent: this computer can open the address, nobody else has.
closed: not even this computer can. local: the server listens on this computer only."""

_TIMEOUT = 1.0  # seconds
_LASTS = 5  # seconds


@dataclass(frozen=True, slots=True)
class Checked:
    """The address for pupils, how far it reaches, and how many other devices have used it."""

    address: str
    reach: Reach
    n_devices: int = 0


def check(here: str) -> Checked:
    """Check the address that pupils use. here: the teacher's own, in the browser."""
    address = addresses.for_others(here)
    if address is None:
        return Checked(here, "local")
    host = urlsplit(address).hostname or ""
    n = arrivals().count(host)
    if n:
        return Checked(address, "reached", n)
    # the teacher's own browser may have come by it, perhaps by a way that this computer cannot go
    is_open = address == here or _opens(address, int(time.time() // _LASTS))
    return Checked(address, "silent" if is_open else "closed")


@st.cache_data(show_spinner=False, max_entries=64)
def _opens(address: str, _when: int) -> bool:
    """Return whether this computer can connect to an address."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with contextlib.suppress(OSError, UnicodeError):
        socket.create_connection((parts.hostname or "", port), _TIMEOUT).close()
        return True
    return False
