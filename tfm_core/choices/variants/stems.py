"""Stems, from pixels to patch embeddings, and poolings, from all tokens to one vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True)
class Cut:
    """Square pictures, ``side`` pixels wide, and the patches that are made of them."""

    side: int
    channels: int
    patch_size: int
    d_model: int

    @property
    def pixels(self) -> int:
        """Number of pixels."""
        return self.side**2

    @property
    def halvings(self) -> list[tuple[int, int, int]]:
        """Width of a map, its channels and those before, for each of the convolutions that halve.

        Each has twice the channels of the one before, the last d_model (Xiao et al. 2021, Table 2).
        """
        sides = [self.side]
        channels = [self.channels, *halving_widths(self.patch_size, self.d_model)]
        for _ in channels[1:]:
            sides.append(ceil(sides[-1] / 2))
        return list(zip(sides[1:], channels[1:], channels[:-1], strict=True))


def halving_widths(patch_size: int, d_model: int) -> list[int]:
    """Return the channels behind each convolution that halves; none for a single pixel."""
    n = (patch_size - 1).bit_length()
    return [max(1, d_model >> (n - 1 - i)) for i in range(n)]


def can_halve(side: int, patch_size: int) -> bool:
    """Whether a picture that is halved, at least once, has a place for each of its patches."""
    n = (patch_size - 1).bit_length()
    return n > 0 and ceil(side / 2**n) * patch_size == side


@dataclass(frozen=True, slots=True, kw_only=True)
class Stem(Variant):
    """layer: called with channels, patch_size and d_model.

    halves: whether it halves the picture until a patch is one place. fits: from the side of a
    picture and patch_size, whether it can be; misfit: a sentence where it can't, with
    ``{patch_size}``, ``{size}``, ``{label}`` of the data and ``{fitting}`` sizes. latex: what is
    projected. rows: what that is made of. code: what makes it in a generated file. drawn: how the
    picture calls it. walk: its paragraph in the walk, walk_seen: what the convolutions made there;
    None without any.
    """

    layer: str
    halves: bool = False
    fits: Callable[[int, int], bool] = lambda side, patch_size: True
    misfit: str | None = field(init=False)
    latex: str
    rows: tuple[str, ...] = ()
    code: str
    drawn: str = field(init=False)
    walk: str = field(init=False)
    walk_seen: str | None = field(init=False)


PLAIN = Stem(
    name="patches",
    source="Dosovitskiy et al. 2021, Eq. 1",
    layer="tfm_core.layers.patches:PatchEmbedding",
    latex=r"\mathrm{patch}_t",
    code="PatchEmbedding(CHANNELS)",
)

WIDTH = 8
"""Channels behind the convolution of the convolutional stem."""

CONVOLUTIONAL = Stem(
    name="conv",
    source="Dosovitskiy et al. 2021, Eq. 1; Xiao et al. 2021",
    layer="tfm_core.layers.fast:ConvStem",
    latex=r"\mathrm{patch}_t(\mathrm{GELU}(K * \mathrm{image} + b_K))",
    code="ConvStem()",
)

HALVING = Stem(
    name="conv-stack",
    source="Xiao et al. 2021, section 4; without its batch norms",
    layer="tfm_core.layers.patches:ConvStack",
    halves=True,
    fits=can_halve,
    latex=r"h^L_t",
    rows=(r"h^0 &= \mathrm{image}", r"h^l &= \mathrm{GELU}(K_l *_2 h^{l-1} + b_l)"),
    code="ConvStack()",
)

STEMS = Registry("stem", PLAIN, CONVOLUTIONAL, HALVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling(Variant):
    """has_cls: whether an extra token is put before patches or words.

    layer: from vectors (B, T, d_model) and bool (B, T), True for a token, or None where
    that is everywhere, to (B, 1, d_model). latex: the vector. of_patches: code for (B, d_model)
    from ``{x}``. of_words: lines of code for (B, 1, d_model) from ``{x}`` and ``{keep}``, the last
    one an expression. drawn: how the picture calls it, with ``{tokens}``. text_source: of its use
    on texts.
    """

    has_cls: bool
    layer: str
    latex: str
    of_patches: str
    of_words: tuple[str, ...]
    drawn: str = field(init=False)
    text_source: str

    @property
    def reads_padding(self) -> bool:
        """Whether it must know which words are padding."""
        return any("{keep}" in line for line in self.of_words)


CLS = Pooling(
    name="cls",
    source="Dosovitskiy et al. 2021, Eq. 4",
    has_cls=True,
    layer="tfm_core.models.ends:first_token",
    latex=r"x_{\mathrm{CLS}}",
    of_patches="{x}[:, 0]",
    of_words=("{x}[:, :1]",),
    text_source="Devlin et al. 2019, section 3",
)
MEAN = Pooling(
    name="mean",
    source="Dosovitskiy et al. 2021, Eq. 4",
    has_cls=False,
    layer="tfm_core.models.ends:mean_of_tokens",
    latex=r"\frac{1}{n}\sum_t x_t",
    of_patches="{x}.mean(1)",
    of_words=(
        "share = {keep} / {keep}.sum(1, keepdim=True)  # of each word in the mean",
        "share[:, None] @ {x}",
    ),
    text_source="mean pooling",
)

POOLINGS = Registry("pooling", CLS, MEAN)
