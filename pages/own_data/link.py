"""Which kind of data and which set the page on own data shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass

from pages.ui import parameters, view_link
from pages.ui.parameters import Text
from tfm_core.data.own.kinds import SET_KINDS

KIND = parameters.named(
    "kind",
    {name: SET_KINDS[name].label for name in ("pictures", "pairs", "labels", "text")},
    first="pictures",
    key="own-data-kind",
)
SET = Text("set", first="", key="own-data-set", most=40)


@dataclass(frozen=True, slots=True)
class OwnDataView:
    """What the page shows; without a set the newest one of its kind, or that of the app."""

    kind: str = view_link.linked(KIND)
    set: str = view_link.linked(SET)
