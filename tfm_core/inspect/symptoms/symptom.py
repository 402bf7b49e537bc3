"""What the doctor finds: a symptom, the step at which it began, and cures to begin as new runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfm_core.config import Experiment

SymptomKind = Literal[
    "diverged", "at-chance", "slow", "stuck", "exploding", "vanishing", "dead-heads", "overfits"
]
Begins = Literal["beginning", "best", "last"]
"""Where a cure begins: anew, or at a checkpoint, of the lowest validation loss or the newest."""


@dataclass(frozen=True, slots=True)
class Cure:
    """An experiment that would do better, and where it begins.

    label: what the button says. step: of the checkpoint that it goes on from, 0 for the beginning.
    """

    label: str
    experiment: Experiment
    begins: Begins = "beginning"
    step: int = 0


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something that is seen in a run: what, since which step, and in a sentence with its figures.

    cures: the one that is likeliest to help first; none where no setting would.
    """

    kind: SymptomKind
    step: int
    sentence: str
    cures: tuple[Cure, ...] = ()
