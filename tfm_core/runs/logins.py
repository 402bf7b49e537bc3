"""Who is logged in, and what that lets them do; an OpenID Connect provider says who somebody is.

A person is known again by issuer and subject, which a provider gives to nobody else (OpenID Connect
Core 1.0, section 5.7); a run keeps their hash and the name to show. What a list says of e-mail
addresses holds for those that the provider does not call unverified.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from tfm_core.runs.labels import MAX_NAME
from tfm_core.runs.owners import Visitor
from tfm_core.runs.settings import Settings
from tfm_core.sentences import N_

_NAMES = "name", "preferred_username", "nickname", "email"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is logged in.

    id: what a run keeps of them, 64 hexadecimal digits. name: as others see it, without what
    follows an @. email: in lower case; None where the provider says none that it has verified.
    """

    id: str
    name: str
    email: str | None


def person(claims: Mapping[str, object]) -> Person | None:
    """Return who an ID token's claims, with Streamlit's ``is_logged_in``, tell of; None: nobody."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    is_known = isinstance(issuer, str) and isinstance(subject, str) and bool(subject)
    if claims.get("is_logged_in") is not True or not is_known:
        return None
    told = hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()
    return Person(told, _name(claims), _email(claims))


def visitor(person: Person | None, said: Settings, *, browser: str, is_host: bool) -> Visitor:
    """Return who acts on a server where people log in.

    browser: the owner of what somebody begins who is not logged in. is_host: has shown the key.
    """
    if person is None:
        why = N_("You are not logged in, so you may only watch: log in at the top of the page.")
        return Visitor(browser, is_host, is_public=True, only_watches="" if is_host else why)
    is_host = is_host or _is_among(person, said.admins)
    return Visitor(
        person.id,
        is_host,
        is_public=True,
        name=person.name,
        only_watches="" if is_host else _why_not(person, said),
    )


def _why_not(person: Person, said: Settings) -> str:
    """Return why a person may only watch, in a sentence; empty where they may start runs."""
    if not said.may_start or _is_among(person, said.may_start):
        return ""
    if person.email is None:
        return N_(
            "You may only watch: who may start runs here goes by verified e-mail addresses, and "
            "your login came without one."
        )
    return N_(
        "You may only watch: {email} is not among those who may start runs here; the host of this "
        "server decides who is.",
        email=person.email,
    )


def _is_among(person: Person, listed: tuple[str, ...]) -> bool:
    """Say whether a list names a person's address, or all of its domain."""
    if person.email is None:
        return False
    return person.email in listed or f"@{person.email.rpartition('@')[2]}" in listed


def _name(claims: Mapping[str, object]) -> str:
    """Return the first name that the provider says: one line, and no e-mail address."""
    for claim in _NAMES:
        said = claims.get(claim)
        words = " ".join(said.partition("@")[0].split()) if isinstance(said, str) else ""
        shown = "".join(letter for letter in words if letter.isprintable())[:MAX_NAME].strip()
        if shown:
            return shown
    return "?"


def _email(claims: Mapping[str, object]) -> str | None:
    email = claims.get("email")
    is_verified = claims.get("email_verified", True) in (True, "true")
    return (
        email.strip().lower() if isinstance(email, str) and "@" in email and is_verified else None
    )
