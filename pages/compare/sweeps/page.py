"""Sweeps: search for the best settings of an experiment."""

from __future__ import annotations

from pages.app import show
from pages.compare.sweeps import choice, running, setup


def page() -> None:
    show.header("sweeps")
    sweep = choice.shown()
    if sweep is None:
        choice.undo()
        setup.new_sweep()
    else:
        running.sweep_view(sweep)


page()
