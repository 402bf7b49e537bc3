"""The kinds of positions that a config can pick, with the words the app shows for them."""

from typing import Annotated

from tfm_core.config.base import Choice, OneOf
from tfm_core.sentences import N_

POSITIONS: dict[str, Choice] = {
    "none": Choice(N_("None"), N_("No position at all: an encoder then sees a bag of tokens.")),
    "sinusoidal": Choice(
        N_("Sinusoidal"), N_("Fixed sine and cosine waves (Vaswani et al. 2017, 3.5).")
    ),
    "learned": Choice(
        N_("Learned"), N_("One trained vector for each position (BERT, GPT-2, ViT).")
    ),
    "rotary": Choice(
        N_("Rotary"), N_("Queries and keys turn with position (RoPE, Su et al. 2021).")
    ),
    "alibi": Choice(N_("ALiBi"), N_("A penalty on distance in every score (Press et al. 2022).")),
}
PositionName = Annotated[str, OneOf(POSITIONS)]

PATCH_POSITIONS: dict[str, Choice] = {
    **POSITIONS,
    "sinusoidal-2d": Choice(
        N_("Sinusoidal, 2-D"), N_("Half of the waves tell the row, half the column of a patch.")
    ),
}
PatchPositionName = Annotated[str, OneOf(PATCH_POSITIONS)]

WORD_POSITIONS = {name: POSITIONS[name] for name in ("none", "sinusoidal", "learned")}
WordPositionName = Annotated[str, OneOf(WORD_POSITIONS)]
GRID_POSITIONS = {**WORD_POSITIONS, "sinusoidal-2d": PATCH_POSITIONS["sinusoidal-2d"]}
GridPositionName = Annotated[str, OneOf(GRID_POSITIONS)]
