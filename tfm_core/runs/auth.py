"""Permissions of visitors, known by a cookie, and of people who log in with OpenID Connect.

A run belongs to the browser that started it. The browser keeps a random token in a cookie, the run
its hash. Everybody with a link may watch; only the owner may change it, and the host of the server
by the command line.

A person who logs in is identified by issuer and subject, which a provider gives to nobody else
(OpenID Connect Core, section 5.7). Names and email addresses may change, so they own nothing.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest

from tfm_core.runs.labels import MAX_NAME
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 random bits: its hash needs no salt


class NotYours(StudentError):
    """Only the owner of a run may do this."""


class OnlyWatches(StudentError):
    """This visitor has read-only access."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor, known by the hash of a browser's token or of a person.

    is_public: other people reach the server, so runs have owners; on your own machine everybody may
    do everything. name: of the person who is logged in. only_watches: why this visitor has
    read-only access, in a sentence; else empty.
    """

    owner: str
    is_public: bool = False
    name: str | None = None
    only_watches: str = ""

    @property
    def may_change_all(self) -> bool:
        """Whether every run may be changed, as on your own machine."""
        return not self.only_watches and not self.is_public

    def began(self, run: Run) -> bool:
        """Return whether this visitor started the run; on your own machine, or the command line."""
        owner = run.meta.owner
        if owner is None:
            return not self.is_public
        return compare_digest(owner.encode(errors="replace"), self.owner.encode())

    def may_change(self, run: Run) -> bool:
        """Return whether this visitor may pause, stop, resume, rename, delete or bring back."""
        return self.may_change_all or (not self.only_watches and self.began(run))

    def check_acts(self) -> None:
        """Raise OnlyWatches, in a sentence, if this visitor has read-only access."""
        if self.only_watches:
            raise OnlyWatches(self.only_watches)

    def check(self, run: Run) -> None:
        """Raise OnlyWatches or NotYours, in a sentence, if this visitor may not change the run."""
        self.check_acts()
        if not self.may_change(run):
            raise NotYours("This run belongs to another visitor. Train a copy.")


def new_token() -> str:
    """Return a token for a browser that has none."""
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token."""
    return _TOKEN.fullmatch(text) is not None


def hashed(token: str) -> str:
    """Return the SHA-256 of a token, as runs store it: 64 hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


_NAMES = "name", "preferred_username", "nickname", "email"


@dataclass(frozen=True, slots=True)
class Person:
    """A person who is logged in.

    id: stored with their runs, 64 hexadecimal digits. name: as others see it, up to an @.
    """

    id: str
    name: str


def person(claims: Mapping[str, object]) -> Person | None:
    """Return the person in an ID token's claims with Streamlit's ``is_logged_in``, or None."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    is_known = isinstance(issuer, str) and isinstance(subject, str) and bool(subject)
    if claims.get("is_logged_in") is not True or not is_known:
        return None
    person_id = hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()
    return Person(person_id, _name(claims))


def visitor(person: Person | None, *, browser: str) -> Visitor:
    """Return the visitor on a server with logins. browser: their owner hash before a login."""
    if person is None:
        why = N_("Log in to start runs.")
        return Visitor(browser, is_public=True, only_watches=why)
    return Visitor(person.id, is_public=True, name=person.name)


def _name(claims: Mapping[str, object]) -> str:
    """Return the first name in the claims: one line, and no email address."""
    for claim in _NAMES:
        value = claims.get(claim)
        line = " ".join(value.partition("@")[0].split()) if isinstance(value, str) else ""
        name = "".join(letter for letter in line if letter.isprintable())[:MAX_NAME].strip()
        if name:
            return name
    return "?"
