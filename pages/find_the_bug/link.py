"""Link of Find the bug: the pair of runs, never the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pages.i18n import N_, _
from pages.ui.address import parameters, view_link
from pages.ui.address.parameters import Unfit, Written

READY = ("recorded-many-heads", "recorded-one-head")
"""A pair that comes with the app: a healthy run and its twin."""


def _pair_of(text: str) -> tuple[str, str]:
    if not re.fullmatch(r"[\w-]{1,64}\.[\w-]{1,64}", text):
        raise Unfit(_("two runs, separated by a dot"))
    healthy, _dot, twin = text.partition(".")
    return healthy, twin


PAIR = Written("pair", reader=_pair_of, writer=".".join, first=READY, key="find-the-bug-pair")
LEVEL = parameters.named(
    "level",
    {"1": N_("Plain"), "2": N_("Hidden"), "3": N_("Subtle")},
    key="find-the-bug-level",
)


@dataclass(frozen=True, slots=True)
class FindTheBugView:
    """The pair, and how well its next one hides."""

    pair: tuple[str, str] = view_link.linked(PAIR)
    level: str = view_link.linked(LEVEL)
