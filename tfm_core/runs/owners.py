"""Whose a run is: that of the browser which began it, known again by a token in its cookie.

The token stays in the browser; a run keeps its hash, which lets nobody in. Everybody who has a
run's link may watch it and train a copy. Where the server is public, its owner alone may do more,
and the host, who has the key. Where people log in, the owner is a person (see ``logins``).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from hmac import compare_digest

from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits: nobody guesses one, so its hash needs no salt


class NotYours(StudentError):
    """Only the owner of a run may do this."""


class OnlyWatches(StudentError):
    """This visitor may look, and do no more."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who acts: the hash of a browser's token or of a person, and whether it is the host.

    is_public: others reach the server too, and runs have owners. On one's own machine everybody may
    do everything. name: of who is logged in. only_watches: why this visitor may do nothing but
    look, in a sentence; empty where they may act.
    """

    owner: str
    is_host: bool = False
    is_public: bool = False
    name: str | None = None
    only_watches: str = ""

    @property
    def may_all(self) -> bool:
        """Whether this is the host, or one's own machine."""
        return not self.only_watches and (self.is_host or not self.is_public)

    def began(self, run: Run) -> bool:
        """Return whether this browser began the run; on one's own machine, or no browser did."""
        owner = run.meta.owner
        if owner is None:
            return not self.is_public
        return compare_digest(owner.encode(errors="replace"), self.owner.encode())

    def may_change(self, run: Run) -> bool:
        """Return whether this visitor may pause, stop, resume, rename, delete or bring back."""
        return self.may_all or (not self.only_watches and self.began(run))

    def check_acts(self) -> None:
        """Raise OnlyWatches, in a sentence, where this visitor may neither start nor change."""
        if self.only_watches:
            raise OnlyWatches(self.only_watches)

    def check(self, run: Run) -> None:
        """Raise OnlyWatches or NotYours, in a sentence, where the run is not theirs to change."""
        self.check_acts()
        if not self.may_change(run):
            raise NotYours("This run belongs to another visitor. Train a copy to change it.")


def new_token() -> str:
    """Return a token for a browser that has none."""
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token."""
    return _TOKEN.fullmatch(text) is not None


def hashed(token: str) -> str:
    """Return what a run keeps of its owner's token: SHA-256, as 64 hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()
