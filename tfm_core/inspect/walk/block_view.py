"""What a step is about: a part of the model, and the block that a walk opens beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.anatomy import Attention, Part, Sublayer, sublayers
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import StepTensor, seen
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_
from tfm_core.variants.forms import CAUSALITIES, Causality
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.positions.position import Inside
from tfm_core.variants.record import Named

MODULES: dict[str, object] = {"math": math, "torch": torch, "F": F}


@dataclass(frozen=True, slots=True)
class BlockView:
    """A part of a subject, and the opened block in which it lies or which follows it.

    axis: of the block's tokens, and their list, as ``"S:src"``.
    """

    subject: Subject
    part: Part
    block: Part
    axis: str
    example: int

    @property
    def path(self) -> str:
        """The path of the block."""
        return self.block.path

    @property
    def attention(self) -> Attention:
        """The block's self-attention."""
        return next(part for part in self.block if isinstance(part, Attention))

    def sublayer(self, name: str) -> Sublayer:
        """Return a sublayer of the block by the end of its path."""
        return next(part for part in sublayers(self.block) if part.layer.path.endswith(f".{name}"))

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
    def order(self) -> Causality | None:
        """Which way an attention's tokens look along what they write; None where they see all."""
        return CAUSALITIES.get(getattr(self.part, "order", ""))

    @property
    def inside(self) -> Inside | None:
        """The positions that act in the block's self-attention."""
        relative = self.attention.relative
        return POSITIONS[relative].inside if relative else None

    @property
    def pair(self) -> str:
        """The axes of a map of self-attention."""
        words = self.axis.partition(":")[2]
        return f"B H Q:{words} K:{words}"

    def mistakes(self, kind: type[Named]) -> tuple[str, ...]:
        """Return the topics on the model's mistakes that change a form, such as ``Residual``."""
        names: tuple[str, ...] = getattr(self.subject.config, "mistakes", ())
        return tuple(f"mistake-{name}" for name in names if isinstance(MISTAKES[name].form, kind))

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, tokens, H, d_head, d_model."""
        batch, length, d_model = self.got("self_attention.query_input").shape
        return batch, length, self.attention.n_heads, self.attention.d_head, d_model

    @property
    def d_q(self) -> tuple[str, int]:
        """The width of all heads' queries: as an axis is called, and its size."""
        attention = self.attention
        name = "d_q" if attention.has_own_width else "d_model"
        return name, attention.n_heads * attention.d_head


def views(subject: Subject, layer: int, example: int) -> Iterator[BlockView]:
    """Iterate over the parts in the order of the forward pass, each behind its children.

    layer: the block of each stack that is opened, from 0; the last one where it has fewer.
    """
    parts = subject.anatomy.parts
    stacks = [number for number, part in enumerate(parts) if part.kind == "stack"]
    for number, part in enumerate(parts):
        stack = parts[next((n for n in stacks if n >= number), stacks[-1])]
        blocks = [child for child in stack.children if child.kind == "block"] or [stack]
        block, axis = blocks[min(layer, len(blocks) - 1)], token_axis(subject, stack)
        behind = [child for child in stack.children if child.kind == "attention"]
        for inner in _from_inside(part, block):
            opened = stack if any(inner is one for one in behind) else block
            yield BlockView(subject, inner, opened, axis, example)


def token_axis(subject: Subject, stack: Part) -> str:
    """Return the axis of a stack's tokens, and their list."""
    if stack.path == "decoder":
        return "T:tgt" if len(stack.inputs) > 1 else "L:sequence"
    if subject.anatomy.of_kind("stem"):
        return "N:tokens"
    return "S:src" if subject.memory_axis else "S:slots"


def _from_inside(part: Part, block: Part) -> Iterator[Part]:
    for child in part.children:
        if child.kind != "block" or child is block:
            yield from _from_inside(child, block)
    yield part


def drops(config: object) -> bool:
    """Return whether a model drops numbers out while it trains."""
    return float(getattr(config, "dropout", 0.0)) > 0


def dropped(config: object) -> tuple[str, ...]:
    """Return the topic of a step where dropout acts, if it does."""
    return ("dropout",) if drops(config) else ()


def mask_seen(mask: Tensor, words: str) -> StepTensor:
    """Return a mask with the axes that it has: 1 where it is the same for all."""
    rows = f"Q:{words}" if mask.size(2) > 1 else "1"
    return seen("mask", N_("mask: 1 = may attend"), mask, f"B 1 {rows} K:{words}")


def stack_mask(subject: Subject, stack: str) -> Tensor:
    """Return the mask of a stack: that of its blocks, or what each narrows where windows differ."""
    is_mixed = getattr(subject.config, "window", 0) and getattr(subject.config, "full_every", 0)
    return subject.cache[f"{stack}.mask" if is_mixed else f"{stack}.layers.0.self_attention.mask"]
