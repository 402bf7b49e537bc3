"""What a head is compared with, and its words in the link: "layer.head.step.run", from 1."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Versus:
    """The other head. layer and head from 0; step None: the same; run None: the same."""

    layer: int
    head: int
    step: int | None = None
    run: str | None = None

    @property
    def text(self) -> str:
        """Return the words for the link."""
        step = "" if self.step is None else str(self.step)
        return f"{self.layer + 1}.{self.head + 1}.{step}.{self.run or ''}"


def parse(text: str) -> Versus | None:
    """Return what the link compares with; None where it says nothing that can be understood."""
    parts = text.split(".")
    if len(parts) != 4:
        return None
    layer, head, step = (_number(part) for part in parts[:3])
    if not layer or not head or (parts[2] and step is None):
        return None
    return Versus(layer - 1, head - 1, step, parts[3] or None)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
