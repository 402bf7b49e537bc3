"""The record of a model to scale: its settings, its ends, and what is known of it. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config import ModelConfig
from tfm_core.config.shape import Shape


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model to scale.

    src_len and tgt_len: tokens of one full example (0 for pictures). n_parameters: the published
    or recomputed count, exact; None where the paper does not fix it. source: where it stands.
    batch: examples that the walk shows. note: what its text says of it, and what is left open.
    """

    name: str
    label: str
    model: ModelConfig
    shape: Shape
    src_len: int = 0
    tgt_len: int = 0
    n_parameters: int | None = None
    source: str = ""
    batch: int = 1
    note: str = ""
