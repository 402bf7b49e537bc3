"""An experiment of sensible size for a set: what one press on a set offers to train."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config import Experiment


@dataclass(frozen=True, slots=True)
class Proposal:
    """An experiment of sensible size on a set: its name, what it is for, and all its settings."""

    name: str
    label: str
    why: str
    experiment: Experiment
