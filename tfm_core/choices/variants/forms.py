"""The families, and forms of a block's parts that a mistake may change.

Each registry of forms holds the healthy one; ``tfm_core.choices.mistakes`` adds the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tfm_core.choices.variants.record import Named, Registry, Variant
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True, kw_only=True)
class Causality(Named):
    """sees_past, sees_future: whether a query sees the tokens before it, and those behind it.

    Of those behind it only while training, the answers among them. note: in a picture, beside the
    attention. rule: from a window, 0 for none: which keys j query i may ask, in LaTeX, None for
    all. function: what makes the mask in a generated file, out of ``torch.ones(length, length)``
    with ``cut``, None for nothing, behind it; says: what that is.
    """

    sees_past: bool
    sees_future: bool
    note: str
    rule: Callable[[int], str | None]
    function: str
    cut: str | None
    says: str


CAUSAL = Causality(
    name="causal",
    sees_past=True,
    sees_future=False,
    note=N_("causal"),
    rule=lambda window: rf"i - {window} \le j \le i" if window else r"j \le i",
    function="causal",
    cut=".tril()",
    says="a query sees itself and the keys before it",
)

CAUSALITIES = Registry("causality", CAUSAL, others="tfm_core.choices.mistakes:forms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections(Named):
    """has_output: whether a matrix mixes the heads' results.

    is_sliced: whether each head maps only its own slice of the vector, by d_head x d_head matrices.
    """

    has_output: bool
    is_sliced: bool


FULL = Projections(name="full", has_output=True, is_sliced=False)

PROJECTIONS = Registry("projections", FULL, others="tfm_core.choices.mistakes:forms")


ATTENTION, FEED_FORWARD = "attention", "feed_forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual(Named):
    """has_sum: whether a sublayer's output is added to anything at all.

    normed: the kinds of sublayer whose output is added to the normalised value that the sublayer
    read, not to the input. source: the paper.
    """

    source: str
    has_sum: bool
    normed: frozenset[str]

    def is_normed(self, sublayer: str) -> bool:
        """Return whether a sublayer of a block, by its name there, adds to its normalised input."""
        return (FEED_FORWARD if sublayer == FEED_FORWARD else ATTENTION) in self.normed


NORMAL = Residual(
    name="normal",
    source="He et al. 2016; Vaswani et al. 2017, section 3.1",
    has_sum=True,
    normed=frozenset(),
)

RESIDUALS = Registry("residuals", NORMAL, others="tfm_core.choices.mistakes:forms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Named):
    """width: the setting whose square root divides the scores, None where nothing does."""

    source: str
    width: Literal["d_head", "d_model"] | None


SQRT_D_HEAD = Scale(name="sqrt-d-head", source="Vaswani et al. 2017, section 3.2.1", width="d_head")

SCALES = Registry("scale of scores", SQRT_D_HEAD, others="tfm_core.choices.mistakes:forms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(Variant):
    """A family of models."""


def family_label(name: str) -> str:
    """Return what a family is called, that of somebody else's code, too."""
    return FAMILIES[name].label if name in FAMILIES else N_("PyTorch model")


FAMILIES = Registry(
    "model family",
    Family(name="encoder-decoder", source="Vaswani et al. 2017"),
    Family(name="encoder-only", source="Devlin et al. 2019"),
    Family(name="decoder-only", source="Radford et al. 2018"),
    Family(name="vit", source="Dosovitskiy et al. 2021"),
    Family(name="captioner", source="Xu et al. 2015"),
    Family(name="recurrent", source="Bahdanau et al. 2015"),
)
