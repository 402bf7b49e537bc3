"""The captioner: a Vision Transformer's encoder reads a picture, a text decoder describes it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import model_validator

from tfm_core.config.base import OneOf, setting
from tfm_core.config.blocks import WriterConfig, check_position
from tfm_core.config.family import PatchConfig
from tfm_core.sentences import N_
from tfm_core.variants.positions import ADDED_TO_PATCHES, ADDED_TO_WORDS
from tfm_core.variants.stems import STEMS


class CaptionerConfig(PatchConfig, WriterConfig):
    """Patches in, words out: the decoder's cross-attention looks at the picture."""

    family: Literal["captioner"] = "captioner"
    n_encoder_layers: int = setting(
        2, N_("Encoder layers"), N_("Blocks that read the picture."), ge=1, le=48
    )
    n_decoder_layers: int = setting(
        1, N_("Decoder layers"), N_("Blocks that write the words."), ge=1, le=48
    )
    patch_size: int = setting(
        7,
        N_("Patch size"),
        N_("Side of a patch in pixels; must divide the picture's."),
        ge=1,
        le=256,
    )
    position: Annotated[str, OneOf(ADDED_TO_PATCHES)] = setting(
        "sinusoidal-2d", N_("Positions"), N_("How the encoder knows where a patch is.")
    )
    text_position: Annotated[str, OneOf(ADDED_TO_WORDS)] = setting(
        "learned", N_("Word positions"), N_("How the decoder knows where a word is.")
    )
    stem: Annotated[str, OneOf(STEMS)] = setting(
        "conv", N_("Stem"), N_("How pixels become patch embeddings.")
    )

    @model_validator(mode="after")
    def _word_positions_fit(self) -> Self:
        check_position(self, "text_position")
        return self
