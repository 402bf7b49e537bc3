"""Sweeps: search for the best settings of an experiment."""

from __future__ import annotations

from pages.sweeps import choice, running, setup
from pages.ui import show


def page() -> None:
    show.header("sweeps")
    sweep = choice.shown()
    if sweep is None:
        choice.undo()
        setup.new_sweep()
    else:
        running.sweep_view(sweep)


page()
