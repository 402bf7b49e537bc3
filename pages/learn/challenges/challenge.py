"""A challenge as its card and its page show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pages.i18n import CONTENT_DIR, N_, _
from tfm_core.reading import toml_of

ICONS: Mapping[str, str] = toml_of((CONTENT_DIR / "challenges.toml").read_text("utf-8"))
LEVELS = {1: N_("easy"), 2: N_("medium"), 3: N_("hard")}


@dataclass(frozen=True, slots=True)
class Challenge:
    """A task that the app checks.

    query: opens it. about: one line. icon: a name of Material Symbols. level: of ``LEVELS``.
    n_done: how many of its n parts the visitor has done.
    """

    query: Mapping[str, str]
    title: str
    about: str
    icon: str
    level: int
    minutes: int
    n_done: int
    n: int = 1

    @property
    def facts(self) -> str:
        """Return level, minutes and the visitor's progress."""
        facts = [_(LEVELS[self.level]), _("{n} min", n=self.minutes)]
        if self.n_done == self.n:
            facts.append(f":green[:material/check_circle: {_('done')}]")
        elif self.n_done:
            facts.append(_("{n} of {count}", n=self.n_done, count=self.n))
        return " · ".join(facts)
