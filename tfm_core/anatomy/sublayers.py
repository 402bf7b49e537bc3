"""The sublayers of a block, each with its norm and its residual connection."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.anatomy.part import Part


@dataclass(frozen=True, slots=True)
class Sublayer:
    """An attention or a feed-forward layer, and what joins it to the block."""

    layer: Part
    residual: Part
    norm: Part | None
    norm_first: bool

    @property
    def has_sum(self) -> bool:
        """Whether the layer's output is added to anything."""
        return len(self.residual.inputs) > 1

    @property
    def is_normed(self) -> bool:
        """Whether it is added to what the norm makes, not to what goes into it."""
        return self.residual.inputs[0].name == "norm(x)"


def sublayers(block: Part) -> tuple[Sublayer, ...]:
    """Return the sublayers of a Transformer's block in the order of the forward pass."""
    size = len(block.children) // sum(part.kind == "residual" for part in block.children)
    starts = range(0, len(block.children), size)
    return tuple(_sublayer(block.children[first : first + size]) for first in starts)


def _sublayer(parts: tuple[Part, ...]) -> Sublayer:
    by_kind = {part.kind: part for part in parts}
    layer = by_kind.get("attention") or by_kind["feed-forward"]
    norm = by_kind.get("norm")
    return Sublayer(layer, by_kind["residual"], norm, norm_first=parts[0] is norm)
