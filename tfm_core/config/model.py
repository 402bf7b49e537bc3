"""What a model is made of: three text topologies and the Vision Transformer."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tfm_core.config.base import Choice, Config, CrossError, knob
from tfm_core.config.choices import (
    ActivationName,
    NormName,
    PatchPositionName,
    PoolingName,
    PositionName,
    StemName,
)
from tfm_core.config.recurrent import RecurrentConfig

FAMILIES: dict[str, Choice] = {
    "encoder-decoder": Choice(
        "Encoder-decoder", "Reads the source, then writes the target (the 2017 Transformer, T5)."
    ),
    "encoder-only": Choice(
        "Encoder-only", "Sees everything at once and answers all positions in one pass (BERT)."
    ),
    "decoder-only": Choice("Decoder-only", "Continues one sequence from left to right (GPT)."),
    "vit": Choice("Vision Transformer", "Cuts a picture into patches and attends over them (ViT)."),
    "recurrent": Choice(
        "RNN with attention",
        "Reads and writes one token after the other, and looks back at the source (2015).",
    ),
}


class BlockConfig(Config):
    """The settings that all Transformer blocks share."""

    d_model: int = knob(
        64,
        "d_model",
        "Width of every token's vector. Twice as wide is four times the matrices.",
        ge=2,
        le=16384,
        step=8,
    )
    n_heads: int = knob(
        4,
        "n_heads",
        "Attention patterns per layer, each of d_model / n_heads dimensions.",
        ge=1,
        le=128,
    )
    d_ff: int = knob(
        128,
        "d_ff",
        "Hidden width of the feed-forward layer; usually 2 to 4 times d_model.",
        ge=1,
        le=65536,
        step=8,
    )
    dropout: float = knob(
        0.0,
        "Dropout",
        "Share of values set to zero while training. Helps when data is scarce.",
        ge=0,
        lt=1,
        step=0.05,
    )
    norm: NormName = knob("layernorm", "Norm", "What keeps activations in range.", advanced=True)
    norm_first: bool = knob(
        True,
        "Pre-norm",
        "Normalise before each sublayer (stable) rather than after (the paper).",
    )
    activation: ActivationName = knob(
        "gelu", "Activation", "The feed-forward layer's non-linearity."
    )
    bias: bool = knob(True, "Biases", "Add a bias in every linear layer.", advanced=True)

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.d_model // self.n_heads

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.d_model % self.n_heads:
            below = max(h for h in range(1, self.n_heads) if self.d_model % h == 0)
            raise CrossError(
                "n_heads",
                f"n_heads {self.n_heads} does not divide d_model {self.d_model}; "
                f"{below} heads of {self.d_model // below} would.",
            )
        position = getattr(self, "position", "none")
        if position == "rotary" and self.d_head % 2:
            raise CrossError(
                "position",
                f"Rotary positions turn pairs of dimensions, but a head has {self.d_head} "
                "dimensions, an odd number; change d_model or n_heads.",
            )
        if position == "sinusoidal" and self.d_model % 2:
            raise CrossError(
                "position",
                f"Sinusoidal positions need an even d_model, and it is {self.d_model}.",
            )
        if position == "sinusoidal-2d" and self.d_model % 4:
            raise CrossError(
                "position",
                "2-D sinusoidal positions need a d_model that 4 divides, "
                f"and it is {self.d_model}.",
            )
        return self


class TextBlockConfig(BlockConfig):
    """What the three text topologies add."""

    position: PositionName = knob(
        "sinusoidal", "Positions", "How the model knows where a token stands."
    )
    max_len: int = knob(
        64,
        "Longest sequence",
        "Rows of the learned position table; only that kind has a limit.",
        ge=2,
        le=8192,
        advanced=True,
    )
    window: int = knob(
        0,
        "Attention window",
        "Tokens to each side that self-attention may see; 0 means all of them.",
        ge=0,
        le=8192,
        advanced=True,
    )
    tie_embeddings: bool = knob(
        False,
        "Tied embeddings",
        "Use the target embedding as output matrix too (Press & Wolf 2017).",
        advanced=True,
    )


class EncoderDecoderConfig(TextBlockConfig):
    """The Transformer of 2017."""

    family: Literal["encoder-decoder"] = "encoder-decoder"
    n_encoder_layers: int = knob(1, "Encoder layers", "Blocks that read the source.", ge=1, le=48)
    n_decoder_layers: int = knob(1, "Decoder layers", "Blocks that write the target.", ge=1, le=48)


class EncoderOnlyConfig(TextBlockConfig):
    """A stack that sees all positions and answers each of them at once."""

    family: Literal["encoder-only"] = "encoder-only"
    n_layers: int = knob(2, "Layers", "Blocks in the stack.", ge=1, le=96)
    pooling: PoolingName = knob(
        "mean", "Pooling", "What the classifier reads, in tasks that ask for one label."
    )


class DecoderOnlyConfig(TextBlockConfig):
    """A stack that reads source and target as one sequence, each token seeing only the past."""

    family: Literal["decoder-only"] = "decoder-only"
    n_layers: int = knob(2, "Layers", "Blocks in the stack.", ge=1, le=96)


class ViTConfig(BlockConfig):
    """The Vision Transformer (Dosovitskiy et al. 2021)."""

    family: Literal["vit"] = "vit"
    n_layers: int = knob(2, "Layers", "Blocks in the stack.", ge=1, le=96)
    patch_size: int = knob(
        7, "Patch size", "Side of a patch in pixels; it must divide the picture.", ge=1, le=256
    )
    position: PatchPositionName = knob(
        "learned", "Positions", "How the model knows where a patch lies."
    )
    pooling: PoolingName = knob("mean", "Pooling", "What the classifier reads.")
    stem: StemName = knob("patches", "Stem", "How pixels become patch embeddings.")


TextModelConfig = EncoderDecoderConfig | EncoderOnlyConfig | DecoderOnlyConfig
TransformerConfig = TextModelConfig | ViTConfig
ModelConfig = Annotated[
    EncoderDecoderConfig | EncoderOnlyConfig | DecoderOnlyConfig | ViTConfig | RecurrentConfig,
    Field(discriminator="family"),
]
MODEL_CONFIGS: dict[str, type[BlockConfig] | type[RecurrentConfig]] = {
    "encoder-decoder": EncoderDecoderConfig,
    "encoder-only": EncoderOnlyConfig,
    "decoder-only": DecoderOnlyConfig,
    "vit": ViTConfig,
    "recurrent": RecurrentConfig,
}
