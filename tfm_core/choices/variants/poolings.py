"""The poolings: how many vectors become the one that a classifier reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfm_core.choices.variants.record import Registry, Variant


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
