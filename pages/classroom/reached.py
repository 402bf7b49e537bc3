"""Whether pupils can reach the server: what tells a firewall from a wrong address."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

from pages.components import addresses
from pages.ui.accounts.arrivals import arrivals, own_addresses

Reach = Literal["reached", "silent", "closed", "local"]
"""reached: other devices have come. silent: this computer can open the address, nobody else has.
closed: not even this computer can. local: the server listens on this computer only."""

_TIMEOUT = 1.0  # seconds
_LASTS = 5  # seconds


@dataclass(frozen=True, slots=True)
class Checked:
    """The address for pupils, how far it reaches, and how many other devices have used it.

    others: further addresses of this computer, in case pupils are in another network.
    """

    address: str
    reach: Reach
    n_devices: int = 0
    others: tuple[str, ...] = ()


def check(here: str) -> Checked:
    """Check the address that pupils use. here: the teacher's own, in the browser."""
    candidates = _candidates(here)
    if not candidates:
        return Checked(here, "local")
    n, address = max(((_count(one), one) for one in candidates), key=lambda pair: pair[0])
    if n:
        return Checked(address, "reached", n)
    others = tuple(one for one in candidates if one != address)
    # the teacher's own browser may have come by it, perhaps by a way that this computer cannot go
    is_open = address == here or _opens(address, int(time.time() // _LASTS))
    return Checked(address, "silent" if is_open else "closed", others=others)


def _candidates(here: str) -> list[str]:
    """Return the addresses that pupils may reach, the likeliest first."""
    first = addresses.for_others(here)
    if first is None:
        return []
    if first == here or len(addresses.hosts()) < 2:  # it listens at one address alone
        return [first]
    parts = urlsplit(first)
    port = f":{parts.port}" if parts.port else ""
    others = (parts._replace(netloc=f"{ip}{port}").geturl() for ip in sorted(_network_addresses()))
    return [first, *(one for one in others if one != first)]


def _network_addresses() -> list[str]:
    """Return the IPv4 addresses of this computer in networks."""
    found = []
    for address in own_addresses():
        with contextlib.suppress(ValueError):
            ip = ipaddress.IPv4Address(address)
            if not (ip.is_loopback or ip.is_link_local or ip.is_unspecified):
                found.append(address)
    return found


def _count(address: str) -> int:
    return arrivals().count(urlsplit(address).hostname or "")


@st.cache_data(show_spinner=False, max_entries=64)
def _opens(address: str, _when: int) -> bool:
    """Return whether this computer can connect to an address."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with contextlib.suppress(OSError, UnicodeError):
        socket.create_connection((parts.hostname or "", port), _TIMEOUT).close()
        return True
    return False
