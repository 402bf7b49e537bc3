"""Which sweep the page shows, in the address: ``sweep=<id>``."""

from __future__ import annotations

from dataclasses import dataclass

from pages.ui import parameters, view_link

SWEEP = parameters.Text("sweep", first="", key="sweeps-shown", most=64)
"""The id of a sweep; empty: a new one is set up."""


@dataclass(frozen=True, slots=True)
class SweepsView:
    """What the page shows."""

    sweep: str = view_link.linked(SWEEP)
