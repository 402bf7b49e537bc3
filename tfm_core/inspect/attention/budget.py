"""How many examples may be watched: at once, for memory, and in all, for time.

Who watches attention makes every map in full: layers × heads × tokens² numbers an example, where
the fused kernel makes none. A model of small patches has a thousand times those of a usual one.
"""

from __future__ import annotations

from tfm_core.config import Experiment
from tfm_core.facts.storage import attention_numbers

AT_ONCE = 20_000_000
"""Numbers in one forward pass: 80 MB for each tensor of the shape of the maps."""
IN_ALL = 2_000_000_000
"""Numbers that one question looks at: some seconds."""


def at_once(experiment: Experiment, most: int) -> int:
    """Return how many examples pass together, ``most`` at most and one at least."""
    return max(1, min(most, AT_ONCE // max(1, attention_numbers(experiment))))


def in_all(experiment: Experiment, most: int, least: int = 1) -> int:
    """Return how many examples are looked at, between ``least`` and ``most``."""
    return max(least, min(most, IN_ALL // max(1, attention_numbers(experiment))))
