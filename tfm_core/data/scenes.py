"""Scenes: digits on a canvas, and what is true of where they stand. No torch.

Every digit stands in its own square; squares are disjoint, so of two digits one is wholly left of,
right of, above or below the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfm_core.choices.config.shape import patches_per_side

CANVAS = 49  # pixels to a side
GRID = 7  # the corner of a drawn square lies on every seventh pixel
LARGE, SMALL = 21, 14  # sides of squares, in pixels
MARGIN = 7  # pixels by which a drawn scene is plain: see ``captions.are_plain``


@dataclass(frozen=True, slots=True)
class PlacedDigit:
    """A digit from 0 to 9 in its square of ``side`` pixels whose corner is left, top."""

    number: int
    left: int
    top: int
    side: int = LARGE

    @property
    def right(self) -> int:
        """The first column behind the square."""
        return self.left + self.side

    @property
    def bottom(self) -> int:
        """The first row below the square."""
        return self.top + self.side

    @property
    def middle_sum(self) -> int:
        """Twice the row plus twice the column of the middle: small near the top left corner."""
        return 2 * (self.left + self.top + self.side)


Scene = tuple[PlacedDigit, ...]


def gaps(first: PlacedDigit, second: PlacedDigit) -> tuple[int, int]:
    """Return the pixels between two squares, across and down; negative where they overlap."""
    across = max(second.left - first.right, first.left - second.right)
    down = max(second.top - first.bottom, first.top - second.bottom)
    return across, down


def are_disjoint(first: PlacedDigit, second: PlacedDigit) -> bool:
    """Return whether two squares share no pixel."""
    return max(gaps(first, second)) >= 0


def relation(first: PlacedDigit, second: PlacedDigit) -> str:
    """Return where ``first`` stands, seen from ``second``: left, right, above or below.

    Where two are true, the one with the wider gap counts; across, where both are equal.
    """
    across, down = gaps(first, second)
    if across >= down:
        return "left" if first.left < second.left else "right"
    return "above" if first.top < second.top else "below"


def named_order(scene: Sequence[PlacedDigit]) -> list[int]:
    """Return the order in which a caption names digits: ascending numbers.

    Of equal numbers the one nearer the top left corner (by row plus column) comes first.
    """
    return sorted(range(len(scene)), key=lambda i: (scene[i].number, scene[i].middle_sum))


def covered(box: Sequence[int], patch_size: int) -> list[int]:
    """Return the patches that a box touches, ascending, counted row by row from the top left.

    box: left, top, right, bottom in pixels, the last two behind the box.
    """
    left, top, right, bottom = box
    columns = range(left // patch_size, -(-right // patch_size))
    rows = range(top // patch_size, -(-bottom // patch_size))
    return [
        row * patches_per_side(CANVAS, patch_size) + column for row in rows for column in columns
    ]
