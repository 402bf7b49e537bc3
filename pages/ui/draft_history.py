"""What a draft was before: a bounded list of changes that can be taken back, and made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pages.ui.drafts import Draft, Values

MAX = 50
"""Changes that a session can take back."""


class Moment(NamedTuple):
    """A draft as it once was, and what it had begun as."""

    values: Values
    base: Values


@dataclass(frozen=True, slots=True)
class History:
    """The moments before a draft, the newest last, and those that were taken back, likewise."""

    past: tuple[Moment, ...] = ()
    future: tuple[Moment, ...] = ()

    def changed(self, old: Draft) -> History:
        """Return the history after a draft was changed; what was taken back is gone."""
        return History((*self.past, moment(old))[-MAX:])

    def undone(self, now: Draft) -> tuple[Moment, History] | None:
        """Return the moment before and its history, or None where there is none."""
        if not self.past:
            return None
        return self.past[-1], History(self.past[:-1], (*self.future, moment(now)))

    def redone(self, now: Draft) -> tuple[Moment, History] | None:
        """Return the moment that was taken back last and its history, or None."""
        if not self.future:
            return None
        return self.future[-1], History((*self.past, moment(now)), self.future[:-1])


def moment(draft: Draft) -> Moment:
    """Return a draft as a moment."""
    return Moment(draft.values, draft.begun)
