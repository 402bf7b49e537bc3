"""The store that servers share: whether it takes what a server publishes, and gives it back."""

from __future__ import annotations

import secrets

from tfm_core.doctor.finding import Finding
from tfm_core.runs.remote.storage import AlreadyExists, StoreUnavailable, remote_of


def check_store(url: str) -> Finding:
    """Write into the store, twice where it should take one, read it, and remove it."""
    name, content = f"tried/{secrets.token_hex(8)}", secrets.token_bytes(64)
    try:
        remote = remote_of(url)
        remote.create(name, content)
        is_same = remote.read(name) == content
        is_exclusive = False
        try:
            remote.create(name, b"")
        except AlreadyExists:
            is_exclusive = True
        remote.remove(name)
    except StoreUnavailable as error:
        return Finding("store", "problem", str(error))
    if not is_same:
        return Finding("store", "problem", "The store of the runs gives back another content.")
    if not is_exclusive:
        words = "The store of the runs takes two writes where it should take one."
        return Finding("store", "warning", words, "Let one server at a time take a run over.")
    return Finding("store", "ok", "The store of the runs can be written, by one alone where asked.")
