"""The training as an animation in the browser: one frame a snapshot, and what goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands beside the maps of a step: the model's answer, whether it is right, and a few
    words for each head, row by row.
    """

    step: int
    answer: str | None = None
    is_right: bool | None = None
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotAnimation:
    """Every snapshot's maps of one attention on one example.

    name: what is animated; another name starts anew. weights: (F, L, H, Q, K). curve: the steps and
    the values of a curve over the training, its name and colour.
    """

    name: str
    frames: Sequence[Frame]
    weights: npt.NDArray[Any]
    curve: tuple[list[int], list[float], str, str] | None = None

    @property
    def steps(self) -> tuple[int, ...]:
        """Return the steps, ascending."""
        return tuple(frame.step for frame in self.frames)

    def header(self, step: int) -> dict[str, Any]:
        """Return what the browser needs beside the weights, standing at a step of the animation."""
        curve = None
        if self.curve is not None:
            steps, values, name, colour = self.curve
            curve = {"steps": steps, "values": values, "name": name, "colour": colour}
        return {
            "animation": self.name,
            "frames": [
                {
                    "step": frame.step,
                    "answer": frame.answer,
                    "right": frame.is_right,
                    "labels": list(frame.labels),
                }
                for frame in self.frames
            ],
            "frame": self.steps.index(step),
            "curve": curve,
        }


def single_frame(
    weights: npt.NDArray[Any], step: int = 0, labels: Sequence[str] = ()
) -> SnapshotAnimation:
    """Return an animation of one frame: maps (L, H, Q, K) that do not move."""
    return SnapshotAnimation("", [Frame(step, labels=labels)], weights[None])
