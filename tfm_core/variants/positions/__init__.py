"""How a model knows where a token is, and which model takes which kind.

``POSITIONS`` holds them all, for a Vision Transformer: its tokens have rows and columns. Words have
no grid. A captioner has two stacks and one setting for what is added in each, so it takes what
acts on embeddings alone.
"""

from tfm_core.variants.positions.added import (
    LEARNED,
    NO_POSITIONS,
    SINUSOIDAL,
    SINUSOIDAL_2D,
)
from tfm_core.variants.positions.inside import ALIBI, ROTARY, T5_BIAS
from tfm_core.variants.positions.position import Position
from tfm_core.variants.record import Registry

__all__ = [
    "ADDED_TO_PATCHES",
    "ADDED_TO_WORDS",
    "POSITIONS",
    "POSITIONS_OF_WORDS",
    "Position",
]

POSITIONS = Registry(
    "position kind", NO_POSITIONS, SINUSOIDAL, LEARNED, ROTARY, ALIBI, T5_BIAS, SINUSOIDAL_2D
)


def _only(*kinds: Position) -> Registry[Position]:
    return Registry(POSITIONS.subject, *kinds)


POSITIONS_OF_WORDS = _only(*(kind for kind in POSITIONS.values() if not kind.needs_grid))
ADDED_TO_PATCHES = _only(*(kind for kind in POSITIONS.values() if not kind.is_inside))
ADDED_TO_WORDS = _only(*(kind for kind in POSITIONS_OF_WORDS.values() if not kind.is_inside))
