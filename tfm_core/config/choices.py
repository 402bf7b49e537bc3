"""The named variants that a config can pick, with the words the app shows for them.

The names are the contract; the classes behind them are found in ``tfm_core.layers`` and
``tfm_core.training``, in dictionaries with the same keys (a test holds the two together).
"""

from typing import Annotated

from tfm_core.config.base import Choice, OneOf

POSITIONS: dict[str, Choice] = {
    "none": Choice("None", "No position at all: an encoder then sees a bag of tokens."),
    "sinusoidal": Choice("Sinusoidal", "Fixed sine and cosine waves (Vaswani et al. 2017, 3.5)."),
    "learned": Choice("Learned", "One trained vector for each position (BERT, GPT-2, ViT)."),
    "rotary": Choice("Rotary", "Queries and keys turn with position (RoPE, Su et al. 2021)."),
    "alibi": Choice("ALiBi", "A penalty on distance in every score (Press et al. 2022)."),
}
PositionName = Annotated[str, OneOf(POSITIONS)]

PATCH_POSITIONS: dict[str, Choice] = {
    **POSITIONS,
    "sinusoidal-2d": Choice(
        "Sinusoidal, 2-D", "Half of the waves tell the row, half the column of a patch."
    ),
}
PatchPositionName = Annotated[str, OneOf(PATCH_POSITIONS)]

WORD_POSITIONS = {name: POSITIONS[name] for name in ("none", "sinusoidal", "learned")}
WordPositionName = Annotated[str, OneOf(WORD_POSITIONS)]
GRID_POSITIONS = {**WORD_POSITIONS, "sinusoidal-2d": PATCH_POSITIONS["sinusoidal-2d"]}
GridPositionName = Annotated[str, OneOf(GRID_POSITIONS)]
