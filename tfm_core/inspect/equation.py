"""One equation of a model, as the app shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Equation:
    """A part of the model, its LaTeX, and where it comes from."""

    title: str
    latex: str
    source: str
