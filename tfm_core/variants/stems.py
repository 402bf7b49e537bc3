"""The stems: how pixels become patch embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Stem(Variant):
    """layer: called with channels, patch_size and d_model.

    macs: multiply-accumulates for a picture, from its pixels, channels and d_model. n_kept: numbers
    that PyTorch keeps of a picture for the backward pass, from pixels and channels. n_kept_once:
    those kept once for a batch, from patch_size and d_model. n_cut: channels of what is cut into
    patches, from those of the picture. latex: what is projected. classes: the source of its
    own classes in a generated file, behind that of ``PatchEmbedding``; None where there are none.
    code: what makes it there. drawn: how the diagram calls it. walk_topics: its paragraphs in the
    walk.
    """

    layer: str
    macs: Callable[[int, int, int], int]
    n_kept: Callable[[int, int], int]
    n_kept_once: Callable[[int, int], int]
    n_cut: Callable[[int], int]
    latex: str
    classes: str | None
    code: str
    drawn: str
    walk_topics: tuple[str, ...]


PLAIN = Stem(
    name="patches",
    label=N_("Plain patches"),
    help=N_("Cut and project each patch linearly (the ViT paper)."),
    source="Dosovitskiy et al. 2021, Eq. 1",
    layer="tfm_core.layers.patches:PatchEmbedding",
    macs=lambda pixels, channels, d_model: pixels * channels * d_model,
    n_kept=lambda pixels, channels: pixels * channels,
    n_kept_once=lambda patch_size, d_model: 0,
    n_cut=lambda channels: channels,
    latex=r"\mathrm{patch}_t",
    classes=None,
    code="PatchEmbedding(CHANNELS)",
    drawn="Patches",
    walk_topics=("patches",),
)

WIDTH = 8
"""Channels behind the convolution of the convolutional stem."""

CONVOLUTIONAL = Stem(
    name="conv",
    label=N_("Convolutional"),
    help=N_(
        "A 3x3 convolution before the patches: sees strokes across patch borders (Xiao et al. "
        "2021).",
    ),
    source="Dosovitskiy et al. 2021, Eq. 1; Xiao et al. 2021",
    layer="tfm_core.layers.patches:ConvStem",
    macs=lambda pixels, channels, d_model: pixels * WIDTH * (9 * channels + d_model),
    # what a kernel sees of each pixel, what the convolution says of it, and that bent
    n_kept=lambda pixels, channels: pixels * (9 * channels + 2 * WIDTH),
    n_kept_once=lambda patch_size, d_model: WIDTH * patch_size**2 * d_model,
    n_cut=lambda channels: WIDTH,
    latex=r"\mathrm{patch}_t(\mathrm{GELU}(K * \mathrm{image} + b_K))",
    classes=dedent(
        f'''\
        class ConvStem(nn.Module):
            """A 3x3 convolution before the patches."""

            def __init__(self):
                super().__init__()
                self.convolution = nn.Conv2d(CHANNELS, {WIDTH}, 3, padding=1)
                self.patches = PatchEmbedding({WIDTH})

            def forward(self, images):
                return self.patches(F.gelu(self.convolution(images)))
        '''
    ),
    code="ConvStem()",
    drawn="3x3 convolution, then patches",
    walk_topics=("patches", "conv"),
)

STEMS = Registry("stem", PLAIN, CONVOLUTIONAL)
