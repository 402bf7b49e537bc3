"""A block of a walk, and whose tokens go through it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import Seen, seen
from tfm_core.sentences import N_
from tfm_core.variants.positions import POSITIONS, Position

MODULES: dict[str, object] = {"math": math, "torch": torch, "F": F}


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block of a subject, and whose tokens go through it.

    path: name of the block's module. axis: its tokens' axis and their list, as ``"S:src"``.
    """

    subject: Subject
    path: str
    axis: str
    example: int

    def got(self, what: str) -> Tensor:
        """Return what was recorded below the block: ``"self_attention.weights"``."""
        return self.subject.cache[f"{self.path}.{what}"]

    def has(self, what: str) -> bool:
        """Return whether that was recorded."""
        return f"{self.path}.{what}" in self.subject.cache

    def module(self, name: str) -> nn.Module:
        """Return a module below the block."""
        return self.subject.model.get_submodule(f"{self.path}.{name}")

    @property
    def kind(self) -> Position:
        """The position kind of the model."""
        return POSITIONS[self.subject.config.position]

    @property
    def pair(self) -> str:
        """The axes of a map of self-attention."""
        words = self.axis.partition(":")[2]
        return f"B H Q:{words} K:{words}"

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, tokens, H, d_head, d_model."""
        batch, length, d_model = self.got("self_attention.query_input").shape
        n_heads = self.subject.block.n_heads
        return batch, length, n_heads, d_model // n_heads, d_model


def block_view(subject: Subject, stack: str, axis: str, layer: int, example: int) -> BlockView:
    """Return a block of a stack, from 0; its last one where it has fewer."""
    count = len(list(subject.model.get_submodule(f"{stack}.layers").children()))
    return BlockView(subject, f"{stack}.layers.{min(layer, count - 1)}", axis, example)


def drops(config: object) -> bool:
    """Return whether a model drops numbers out while it trains."""
    return float(getattr(config, "dropout", 0.0)) > 0


def dropped(config: object) -> tuple[str, ...]:
    """Return the topic of a step where dropout acts, if it does."""
    return ("dropout",) if drops(config) else ()


def mask_seen(mask: Tensor, words: str) -> Seen:
    """Return a mask with the axes that it has: 1 where it is the same for all."""
    rows = f"Q:{words}" if mask.size(2) > 1 else "1"
    return seen("mask", N_("mask: 1 = may attend"), mask, f"B 1 {rows} K:{words}")
