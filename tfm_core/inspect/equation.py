"""One equation of a model, in LaTeX, with its source."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Equation:
    """A part of the model, its LaTeX, and where it comes from."""

    title: str
    latex: str
    source: str


def dropped(config: ModelConfig, x: str) -> str:
    """Return LaTeX with dropout around it, where the model has any."""
    return rf"\mathrm{{Dropout}}({x})" if config.dropout else x
