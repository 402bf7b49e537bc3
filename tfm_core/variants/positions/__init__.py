"""How a model knows where a token stands: one file a kind, and which model takes which.

``POSITIONS`` has them all, as a Vision Transformer may: its tokens stand in rows and columns. Words
have no grid. A captioner has two stacks and one setting for what is added in each, so it takes what
acts on embeddings alone.
"""

from tfm_core.variants.positions.alibi import ALIBI
from tfm_core.variants.positions.learned import LEARNED
from tfm_core.variants.positions.none import NONE
from tfm_core.variants.positions.position import Position
from tfm_core.variants.positions.rotary import ROTARY
from tfm_core.variants.positions.sinusoidal import SINUSOIDAL
from tfm_core.variants.positions.sinusoidal_2d import SINUSOIDAL_2D
from tfm_core.variants.positions.t5_bias import T5_BIAS
from tfm_core.variants.record import Registry

__all__ = [
    "ADDED_TO_PATCHES",
    "ADDED_TO_WORDS",
    "POSITIONS",
    "POSITIONS_OF_WORDS",
    "Position",
]

POSITIONS = Registry(
    "position kind", NONE, SINUSOIDAL, LEARNED, ROTARY, ALIBI, T5_BIAS, SINUSOIDAL_2D
)


def _only(*kinds: Position) -> Registry[Position]:
    return Registry(POSITIONS.subject, *kinds)


POSITIONS_OF_WORDS = _only(*(kind for kind in POSITIONS.values() if not kind.needs_grid))
ADDED_TO_PATCHES = _only(*(kind for kind in POSITIONS.values() if not kind.is_inside))
ADDED_TO_WORDS = _only(*(kind for kind in POSITIONS_OF_WORDS.values() if not kind.is_inside))
