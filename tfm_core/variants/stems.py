"""The stems: how pixels become patch embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from textwrap import dedent

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.record import Example, Registry, Variant


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
    projected. rows: what that is made of. classes: the source of its classes in a generated
    file, None where there are none; cuts: whether they use ``PatchEmbedding``. code: what makes it
    there. drawn: how the diagram calls it. walk_topics: its paragraphs in the walk, walk_words: the
    last of them. walk_code: how patches come about, walk_modules: modules below the stem that it
    calls, by name, and walk_seen: what the convolutions made, in words; None without any. example:
    a call in walk_code, explained.
    """

    layer: str
    halves: bool = False
    fits: Callable[[int, int], bool] = lambda side, patch_size: True
    misfit: str | None = None
    latex: str
    rows: tuple[str, ...] = ()
    classes: str | None
    cuts: bool = True
    code: str
    drawn: str
    walk_topics: tuple[str, ...]
    walk_words: str
    walk_code: str
    walk_modules: Mapping[str, str]
    walk_seen: str | None
    example: Example | None


PLAIN = Stem(
    name="patches",
    label=N_("Plain patches"),
    help=N_("Cut and project each patch linearly (the ViT paper)."),
    source="Dosovitskiy et al. 2021, Eq. 1",
    layer="tfm_core.layers.patches:PatchEmbedding",
    latex=r"\mathrm{patch}_t",
    classes=None,
    code="PatchEmbedding(CHANNELS)",
    drawn=N_("Patches"),
    walk_topics=("patches",),
    walk_words=Paragraph("variants/walk-patches"),
    walk_code="patches = patchify(images, patch_size)",
    walk_modules={},
    walk_seen=None,
    example=Example(
        "patchify",
        r"\bpatchify\(",
        N_("Cut rows and columns, group the patches, flatten."),
        (
            "image = torch.arange(16).view(1, 4, 4)  # (C, Y, X), patches of 2 x 2",
            "cut = image.view(1, 2, 2, 2, 2)  # C, rows, y, columns, x",
            "cut.permute(1, 3, 0, 2, 4).reshape(4, 4)  # a patch in each row",
        ),
    ),
)

WIDTH = 8
"""Channels behind the convolution of the convolutional stem."""

CONVOLUTIONAL = Stem(
    name="conv",
    label=N_("Convolutional"),
    help=N_("A 3x3 convolution sees strokes across patches (Xiao et al. 2021)."),
    source="Dosovitskiy et al. 2021, Eq. 1; Xiao et al. 2021",
    layer="tfm_core.layers.fast:ConvStem",
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
    drawn=N_("3x3 convolution, then patches"),
    walk_topics=("patches", "conv"),
    walk_words=Paragraph("variants/walk-conv-stem"),
    walk_code="seen = F.gelu(convolution(images))\npatches = patchify(seen, patch_size)",
    walk_modules={"convolution": "convolution"},
    walk_seen=N_("output of the convolution"),
    example=PLAIN.example,
)

HALVING = Stem(
    name="conv-stack",
    label=N_("Convolution stack"),
    help=Paragraph("variants/conv-stack"),
    source="Xiao et al. 2021, section 4; without its batch norms",
    layer="tfm_core.layers.patches:ConvStack",
    halves=True,
    fits=can_halve,
    misfit=N_(
        "A convolution stack cannot halve the {size}x{size} pictures of {label} to patches of "
        "{patch_size}; choose from {fitting}."
    ),
    cuts=False,
    latex=r"h^L_t",
    rows=(r"h^0 &= \mathrm{image}", r"h^l &= \mathrm{GELU}(K_l *_2 h^{l-1} + b_l)"),
    classes=dedent(
        '''\
        class ConvStack(nn.Module):
            """3x3 convolutions that halve the picture until a patch is one place."""

            def __init__(self):
                super().__init__()
                n = (PATCH - 1).bit_length()
                sizes = [CHANNELS, *(max(1, D_MODEL >> (n - 1 - i)) for i in range(n))]
                self.convolutions = nn.ModuleList(
                    nn.Conv2d(before, width, 3, stride=2, padding=1)
                    for before, width in zip(sizes, sizes[1:])
                )
                self.projection = nn.Linear(D_MODEL, D_MODEL)

            def forward(self, images):
                seen = images
                for convolution in self.convolutions:
                    seen = F.gelu(convolution(seen))
                return self.projection(seen.flatten(2).mT)  # (B, patches, D_MODEL)
        '''
    ),
    code="ConvStack()",
    drawn=N_("Halved to patches"),
    walk_topics=("stack",),
    walk_words=Paragraph("variants/walk-conv-stack"),
    walk_code=(
        "seen = images\nfor convolution in convolutions:\n"
        "    seen = F.gelu(convolution(seen))\npatches = seen.flatten(2).mT"
    ),
    walk_modules={"convolutions": "convolutions"},
    walk_seen=N_("output of the last convolution"),
    example=None,
)

STEMS = Registry("stem", PLAIN, CONVOLUTIONAL, HALVING)
