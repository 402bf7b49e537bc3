"""The residual connections of a block: what a sublayer's output is added to, if to anything."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.variants.record import Named, Registry

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

RESIDUALS = Registry("residuals", NORMAL, others="tfm_core.mistakes:forms")
