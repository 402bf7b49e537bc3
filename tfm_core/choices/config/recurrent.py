"""The settings of an encoder-decoder of recurrent cells with attention: before the Transformer."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from tfm_core.choices.config.base import CrossError, OneOf, setting
from tfm_core.choices.config.family import FamilyConfig
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.cells import CELLS
from tfm_core.choices.variants.positions import NO_POSITIONS


class RecurrentConfig(FamilyConfig):
    """Sequence to sequence with attention (Bahdanau et al. 2015; Luong et al. 2015)."""

    has_blocks: ClassVar[bool] = False
    family: Literal["recurrent"] = "recurrent"
    cell: Annotated[str, OneOf(CELLS)] = setting("cell", "gru")
    attention: Annotated[str, OneOf(ALIGNMENT_SCORES)] = setting("attention", "additive")
    d_model: int = setting("d_model", 64, ge=2, le=4096, step=8)
    n_layers: int = setting("n_layers-recurrent", 1, ge=1, le=16)
    is_bidirectional: bool = setting("is_bidirectional", True)
    dropout: float = setting("dropout", 0.0, ge=0, lt=1, step=0.05)

    @property
    def n_heads(self) -> int:
        """There is one attention pattern for each target token."""
        return 1

    @property
    def d_ff(self) -> int:
        """There is no feed-forward layer."""
        return 0

    @property
    def score_divisor(self) -> float:
        """Scores stay as they are."""
        return 1.0

    @property
    def writes_from_past(self) -> bool:
        """Each token is made of the state that those before it leave."""
        return True

    @property
    def position(self) -> str:
        """Nothing is added to embeddings: the order is in the order of the steps."""
        return NO_POSITIONS.name

    @model_validator(mode="after")
    def _halves(self) -> Self:
        if self.is_bidirectional and self.d_model % 2:
            raise CrossError(
                "d_model",
                "d_model is {d_model}, which cannot be halved for two directions; use {even}.",
                d_model=self.d_model,
                even=self.d_model + 1,
            )
        return self
