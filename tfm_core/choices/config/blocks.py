"""Settings of Transformer blocks, and what the settings of every family know."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import model_validator

from tfm_core.choices.config.base import Config, CrossError, OneOf, check_mistakes, setting, some_of
from tfm_core.choices.config.shape import patches_per_side
from tfm_core.choices.mistakes import form_of
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import CAUSALITIES, PROJECTIONS, RESIDUALS, SCALES, Causality
from tfm_core.choices.variants.norms import FINAL_NORMS, NORMS
from tfm_core.choices.variants.positions import POSITIONS, ROPE_SCALINGS, RopeScaling
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.choices.variants.stems import STEMS, Pooling
from tfm_core.sentences import Paragraph


class FamilyConfig(Config):
    """The settings of a model, with the values of a family that lacks a part; others override."""

    has_blocks: ClassVar[bool] = True
    """Whether it is made of Transformer blocks."""

    @property
    def order(self) -> Causality | None:
        """Which of the tokens that it writes each of them sees; None where no mask decides that."""
        return None

    @property
    def writes_from_past(self) -> bool:
        """Whether each token that it writes is made of those before it alone."""
        return False

    @property
    def pool(self) -> Pooling | None:
        """How one vector is made of all for a label; None in a family that gives no label."""
        return None

    @property
    def n_positions(self) -> int | None:
        """Rows of the table of positions, where the settings fix their number; None otherwise."""
        return None

    def joined_len(self, src_len: int, tgt_len: int) -> int:
        """Return the longest sequence that one stack sees of a source and a target."""
        return max(src_len, tgt_len)

    def patches_per_side(self, image_size: int) -> int:
        """Return the number of patches in a row of a square picture; 0 where words are read."""
        return 0

    def check_picture(self, image_size: int, label: str) -> None:
        """Raise CrossError where the pictures of a task, by its label, cannot be cut."""


class PatchConfig(FamilyConfig):
    """Facts of a family that cuts pictures into patches."""

    if TYPE_CHECKING:  # fields of each family, in the order of its form
        patch_size: int
        stem: str

    def patches_per_side(self, image_size: int) -> int:
        """Return the number of patches in a row. Raises ValueError where they do not divide it."""
        return patches_per_side(image_size, self.patch_size)

    def check_picture(self, image_size: int, label: str) -> None:
        """Raise CrossError where patches do not divide a picture, or a stem cannot halve it."""
        sizes = range(1, image_size + 1)
        if image_size % self.patch_size:
            raise CrossError(
                "model.patch_size",
                Paragraph(
                    "settings/patch-size",
                    patch_size=self.patch_size,
                    size=image_size,
                    label=label,
                    fitting=", ".join(str(n) for n in sizes if image_size % n == 0),
                ),
            )
        stem = STEMS[self.stem]
        if stem.misfit is not None and not stem.fits(image_size, self.patch_size):
            raise CrossError(
                "model.patch_size",
                stem.misfit,
                patch_size=self.patch_size,
                size=image_size,
                label=label,
                fitting=", ".join(str(n) for n in sizes if stem.fits(image_size, n)),
            )


class BlockConfig(FamilyConfig):
    """The settings that all Transformer blocks share."""

    d_model: int = setting("d_model", 64, ge=2, le=16384, step=8)
    n_heads: int = setting("n_heads", 4, ge=1, le=128)
    d_ff: int = setting("d_ff", 128, ge=0, le=65536, step=8)
    n_kv_heads: int = setting("n_kv_heads", 0, ge=0, le=128, advanced=True)
    head_dim: int = setting("head_dim", 0, ge=0, le=1024, advanced=True)
    qk_norm: bool = setting("qk_norm", False, advanced=True)
    sink: Annotated[str, OneOf(SINKS)] = setting("sink", "none", advanced=True)
    dropout: float = setting("dropout", 0.0, ge=0, lt=1, step=0.05)
    norm: Annotated[str, OneOf(NORMS)] = setting("norm", "layernorm", advanced=True)
    norm_eps: float = setting("norm_eps", 1e-5, ge=1e-12, le=0.1, step=1e-6, advanced=True)
    norm_first: bool = setting("norm_first", True)
    activation: Annotated[str, OneOf(ACTIVATIONS)] = setting(
        "activation", "gelu", needs={"d_ff": ()}
    )
    n_experts: int = setting("n_experts", 0, ge=0, le=64, advanced=True, needs={"d_ff": ()})
    top_k: int = setting("top_k", 2, ge=1, le=64, advanced=True, needs={"n_experts": ()})
    balance_weight: float = setting(
        "balance_weight", 0.01, ge=0, le=1, step=0.01, advanced=True, needs={"n_experts": ()}
    )
    bias: bool = setting("bias", True, advanced=True)
    projection_bias: bool = setting("projection_bias", True, advanced=True)
    qkv_bias: bool = setting("qkv_bias", False, advanced=True)
    mistakes: Annotated[tuple[str, ...], some_of("block")] = setting("mistakes", (), advanced=True)
    query_key_gain: float = setting("query_key_gain", 1.0, ge=0.1, le=10, step=0.1, advanced=True)
    final_norm: Annotated[str, OneOf(FINAL_NORMS)] = setting(
        "final_norm", "pre-norm", advanced=True
    )

    @property
    def has_final_norm(self) -> bool:
        """Whether a norm follows the last block."""
        return self.has_norms and FINAL_NORMS[self.final_norm].is_present(self.norm_first)

    @property
    def has_norms(self) -> bool:
        """Whether anything is normalised at all."""
        return NORMS[self.norm].latex is not None

    @property
    def residual(self) -> str:
        """What each sublayer's output is added to, by its name in RESIDUALS."""
        return form_of(self.mistakes, RESIDUALS)

    @property
    def has_residuals(self) -> bool:
        """Whether a sublayer's output is added to anything."""
        return RESIDUALS[self.residual].has_sum

    @property
    def scale(self) -> str:
        """What divides the scores before the softmax, by its name in SCALES."""
        return form_of(self.mistakes, SCALES)

    @property
    def score_divisor(self) -> float | None:
        """What scores are divided by; None is sqrt(d_head), as it should be."""
        width = SCALES[self.scale].width
        if width == "d_head":
            return None
        return 1.0 if width is None else math.sqrt(getattr(self, width))

    @property
    def projections(self) -> str:
        """Which matrices an attention has, by their name in PROJECTIONS."""
        return form_of(self.mistakes, PROJECTIONS)

    @property
    def shared_norm(self) -> bool:
        """Whether all sublayers of a block have one norm."""
        return "shared-norm" in self.mistakes

    @property
    def has_feed_forward(self) -> bool:
        """Whether a feed-forward layer follows attention in each block."""
        return self.d_ff > 0

    @property
    def has_experts(self) -> bool:
        """Whether a router sends each token to some of several feed-forward layers."""
        return self.has_feed_forward and self.n_experts > 1

    @property
    def attention_bias(self) -> bool:
        """Whether all matrices of an attention have biases."""
        return self.bias and self.projection_bias

    @property
    def has_qkv_bias(self) -> bool:
        """Whether queries, keys and values have biases."""
        return self.attention_bias or self.qkv_bias

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.head_dim or self.d_model // self.n_heads

    @property
    def d_q(self) -> int:
        """Width of a token's queries of all heads."""
        return self.n_heads * self.d_head

    @property
    def has_own_width(self) -> bool:
        """Whether the heads together are not as wide as a token's vector."""
        return self.d_q != self.d_model

    @property
    def is_grouped(self) -> bool:
        """Whether several heads share their keys and values."""
        return 0 < self.n_kv_heads < self.n_heads

    @property
    def d_kv(self) -> int:
        """Width of a token's keys of all heads, and of its values."""
        return (self.n_kv_heads or self.n_heads) * self.d_head

    @property
    def d_qkv(self) -> int:
        """Width of a token's queries, keys and values together."""
        return self.d_q + 2 * self.d_kv

    def windows(self, n_layers: int) -> tuple[int, ...]:
        """Return how many tokens away each layer of a stack sees; 0 for all."""
        return (0,) * n_layers

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.d_model % self.n_heads and not self.head_dim:
            raise CrossError(
                "n_heads",
                "n_heads {n_heads} does not divide d_model {d_model}; {n} does.",
                n_heads=self.n_heads,
                d_model=self.d_model,
                n=max(n for n in range(1, self.n_heads) if self.d_model % n == 0),
            )
        if self.n_kv_heads and self.n_heads % self.n_kv_heads:
            raise CrossError(
                "n_kv_heads",
                "n_kv_heads {n_kv_heads} does not divide n_heads {n_heads}; choose from {fitting}.",
                n_kv_heads=self.n_kv_heads,
                n_heads=self.n_heads,
                fitting=", ".join(
                    str(n) for n in range(1, self.n_heads + 1) if self.n_heads % n == 0
                ),
            )
        if self.is_grouped and PROJECTIONS[self.projections].is_sliced:
            raise CrossError("n_kv_heads", Paragraph("settings/sliced-groups"))
        if self.has_own_width and self.projections != "full":
            d_head = self.d_model // self.n_heads
            raise CrossError("head_dim", Paragraph("settings/head-dim-mistake", d_head=d_head))
        if self.has_experts and self.top_k > self.n_experts:
            raise CrossError(
                "top_k",
                "top_k {top_k} is more than the {n_experts} experts; choose at most {n_experts}.",
                top_k=self.top_k,
                n_experts=self.n_experts,
            )
        if "position" in type(self).model_fields:
            check_position(self, "position")
        if not self.has_norms and self.final_norm == "always":
            raise CrossError(
                "final_norm", "A last norm needs a norm; choose one, or another last norm."
            )
        check_mistakes(self)
        return self


def _scalings(chosen: Callable[[RopeScaling], bool]) -> tuple[str, ...]:
    return tuple(name for name, scaling in ROPE_SCALINGS.items() if chosen(scaling))


_ROTARY: dict[str, tuple[str, ...]] = {"position": ("rotary",)}


class RotaryConfig(BlockConfig):
    """What the families add whose positions may be rotary; other positions ignore it."""

    rope_theta: float = setting(
        "rope_theta", 10000.0, ge=10, le=1e9, step=1000, advanced=True, needs=_ROTARY
    )
    rope_scaling: Annotated[str, OneOf(ROPE_SCALINGS)] = setting(
        "rope_scaling", "none", advanced=True, needs=_ROTARY
    )
    rope_factor: float = setting(
        "rope_factor",
        8.0,
        ge=1,
        le=1024,
        step=1,
        advanced=True,
        needs=_ROTARY | {"rope_scaling": _scalings(lambda one: one.function is not None)},
    )
    rope_original_len: int = setting(
        "rope_original_len",
        8192,
        ge=2,
        le=10_000_000,
        advanced=True,
        needs=_ROTARY | {"rope_scaling": _scalings(lambda one: one.needs_length)},
    )


class WriterConfig(BlockConfig):
    """What the families add that write a text token by token, each seeing those before it."""

    mistakes: Annotated[tuple[str, ...], some_of("block", "decoder")] = setting(
        "mistakes", (), advanced=True
    )

    @property
    def causality(self) -> str:
        """Which tokens of what it writes a decoder's token sees, by its name in CAUSALITIES."""
        return form_of(self.mistakes, CAUSALITIES)

    @property
    def order(self) -> Causality:
        """Which tokens each token that it writes sees."""
        return CAUSALITIES[self.causality]

    @property
    def writes_from_past(self) -> bool:
        """Whether each token that it writes is made of those before it alone."""
        return not self.order.sees_future


def check_position(config: BlockConfig, field: str) -> None:
    """Raise CrossError where the positions that ``field`` names are impossible at this width."""
    kind = POSITIONS[getattr(config, field)]
    sentence = kind.impossible(config.d_model, config.d_head)
    if sentence is not None:
        raise CrossError(field, sentence)
