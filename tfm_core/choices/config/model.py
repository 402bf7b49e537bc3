"""What a model is made of: the families, and the settings of each."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tfm_core.choices.config.base import CrossError, OneOf, set_fact, setting, tagged
from tfm_core.choices.config.blocks import (
    FamilyConfig,
    PatchConfig,
    RotaryConfig,
    WriterConfig,
    check_position,
)
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.positions import (
    ADDED_TO_PATCHES,
    ADDED_TO_WORDS,
    NO_POSITIONS,
    POSITIONS,
    POSITIONS_OF_WORDS,
)
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.stems import POOLINGS, STEMS, Pooling
from tfm_core.sentences import N_, Paragraph, StudentError


class TextBlockConfig(RotaryConfig):
    """What the three text topologies add."""

    position: Annotated[str, OneOf(POSITIONS_OF_WORDS)] = setting("position", "sinusoidal")
    max_len: int = setting("max_len", 64, ge=2, le=8192, advanced=True)
    window: int = setting("window", 0, ge=0, le=8192, advanced=True)
    full_every: int = setting("full_every", 0, ge=0, le=96, advanced=True, needs={"window": ()})
    tie_embeddings: bool = setting("tie_embeddings", False, advanced=True)

    def windows(self, n_layers: int) -> tuple[int, ...]:
        """Return how many tokens away each layer of a stack sees; 0 for all."""
        every = self.full_every or n_layers + 1
        return tuple(self.window if layer % every else 0 for layer in range(1, n_layers + 1))

    @model_validator(mode="after")
    def _some_layer_has_the_window(self) -> Self:
        if self.window and self.full_every == 1:
            raise CrossError("full_every", Paragraph("settings/no-window-left"))
        return self

    @property
    def n_positions(self) -> int | None:
        """Rows of the table of positions, None without one."""
        return self.max_len if POSITIONS[self.position].has_table else None

    def is_tied(self, shape: TextShape) -> bool:
        """Whether the output matrix is an embedding's: chosen, and both have the same size."""
        table = shape.src_vocabulary if self._reads_source_only else shape.tgt_vocabulary
        return self.tie_embeddings and shape.head == "tokens" and table == shape.tgt_vocabulary

    @property
    def _reads_source_only(self) -> bool:
        return False


class EncoderDecoderConfig(WriterConfig, TextBlockConfig):
    """The Transformer of 2017."""

    family: Literal["encoder-decoder"] = "encoder-decoder"
    n_encoder_layers: int = setting("n_encoder_layers", 1, ge=1, le=48)
    n_decoder_layers: int = setting("n_decoder_layers", 1, ge=1, le=48)


class EncoderOnlyConfig(TextBlockConfig):
    """A stack that sees all positions and answers each of them at once."""

    family: Literal["encoder-only"] = "encoder-only"
    n_layers: int = setting("n_layers", 2, ge=1, le=96)
    pooling: Annotated[str, OneOf(POOLINGS)] = setting("pooling", "mean")

    @property
    def pool(self) -> Pooling:
        """How one vector is made of all for a label."""
        return POOLINGS[self.pooling]

    @property
    def _reads_source_only(self) -> bool:
        return True


class DecoderOnlyConfig(WriterConfig, TextBlockConfig):
    """A stack that reads source and target as one sequence, each token seeing only the past."""

    family: Literal["decoder-only"] = "decoder-only"
    n_layers: int = setting("n_layers", 2, ge=1, le=96)

    def joined_len(self, src_len: int, tgt_len: int) -> int:
        """Return the length of both in one sequence."""
        return src_len + tgt_len


class ViTConfig(PatchConfig, RotaryConfig):
    """The Vision Transformer (Dosovitskiy et al. 2021)."""

    family: Literal["vit"] = "vit"
    n_layers: int = setting("n_layers", 2, ge=1, le=96)
    patch_size: int = setting("patch_size", 7, ge=1, le=256)
    position: Annotated[str, OneOf(POSITIONS)] = setting("position-patches", "learned")
    pooling: Annotated[str, OneOf(POOLINGS)] = setting("pooling", "mean")
    stem: Annotated[str, OneOf(STEMS)] = setting("stem", "patches")

    @property
    def pool(self) -> Pooling:
        """How one vector is made of all for a label."""
        return POOLINGS[self.pooling]


class CaptionerConfig(PatchConfig, WriterConfig):
    """A Vision Transformer's encoder reads a picture; a text decoder attends to it."""

    family: Literal["captioner"] = "captioner"
    n_encoder_layers: int = setting("n_encoder_layers", 2, ge=1, le=48)
    n_decoder_layers: int = setting("n_decoder_layers", 1, ge=1, le=48)
    patch_size: int = setting("patch_size", 7, ge=1, le=256)
    position: Annotated[str, OneOf(ADDED_TO_PATCHES)] = setting("position-patches", "sinusoidal-2d")
    text_position: Annotated[str, OneOf(ADDED_TO_WORDS)] = setting("text_position", "learned")
    stem: Annotated[str, OneOf(STEMS)] = setting("stem", "conv")

    @model_validator(mode="after")
    def _word_positions_fit(self) -> Self:
        check_position(self, "text_position")
        return self


MAX_NAME = 200
MAX_LAYERS = 999
_Names = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=MAX_NAME)], ...],
    Field(max_length=MAX_LAYERS),
]


class ForeignModelConfig(FamilyConfig):
    """What is known of somebody else's model: its class, size and attention modules.

    No part of it is built here. Its modules stand under the names that models of the app have, so
    that maps, statistics and figures need no other way: ``encoder.layers.0.self_attention`` is the
    first attention that sees all positions, ``decoder.layers.0.self_attention`` the first causal
    one.

    both: modules whose queries see all positions, in the order of the forward pass; past: those
    that see no later one; cross: those whose keys are of another sequence.
    """

    has_blocks: ClassVar[bool] = False
    family: Literal["foreign"] = "foreign"
    class_name: str = set_fact(N_("Class"), default="Module", min_length=1, max_length=MAX_NAME)
    n_parameters: int = set_fact(N_("Parameters"), default=0, ge=0, le=10**15)
    n_heads: int = set_fact(N_("Heads"), default=1, ge=1, le=4096)
    both: _Names = set_fact(N_("Self-attention"), default=())
    past: _Names = set_fact(N_("Causal self-attention"), default=())
    cross: _Names = set_fact(N_("Cross-attention"), default=())

    @property
    def modules(self) -> dict[str, str]:
        """The module of each attention: its name here -> its name in the model."""
        stacks = {
            "encoder.layers.{}.self_attention": self.both,
            "decoder.layers.{}.self_attention": self.past,
            "decoder.layers.{}.cross_attention": self.cross,
        }
        return {
            here.format(layer): name
            for here, names in stacks.items()
            for layer, name in enumerate(names)
        }


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


DEPTHS = ("n_layers", "n_encoder_layers", "n_decoder_layers")
"""The settings that say how many blocks a stack has; each family has some of them."""

TextModelConfig = EncoderDecoderConfig | EncoderOnlyConfig | DecoderOnlyConfig
TransformerConfig = TextModelConfig | ViTConfig | CaptionerConfig
AnyModel = TextModelConfig | ViTConfig | CaptionerConfig | RecurrentConfig
ModelConfig = Annotated[AnyModel | ForeignModelConfig, Field(discriminator="family")]
MODEL_CONFIGS: dict[str, type[AnyModel]] = tagged(AnyModel, "family")
"""The settings of each family."""


def built(model: ModelConfig) -> AnyModel:
    """Return the settings of a model that the app can build. Raises StudentError for any other."""
    if isinstance(model, ForeignModelConfig):
        raise StudentError("This model is from another program, so its settings are unknown.")
    return model
