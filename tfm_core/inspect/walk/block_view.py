"""What a step is about: a part of the model, and the block that a walk opens beside it."""

from __future__ import annotations

import dis
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.anatomy import Attention, Part, Sublayer, sublayers
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.variants.forms import CAUSALITIES, Causality
from tfm_core.choices.variants.positions import POSITIONS, Position
from tfm_core.choices.variants.record import Named
from tfm_core.inspect.questions import Question
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen
from tfm_core.sentences import N_

_MODULES: dict[str, object] = {"math": math, "torch": torch, "F": F}
_OF_ATTENTION = {
    "q": ("projected_query", N_("query"), "B {tokens} {queries}"),
    "k": ("projected_key", N_("key"), "B {tokens} {keys}"),
    "v": ("projected_value", N_("value"), "B {tokens} {keys}"),
    "queries": ("query", N_("queries"), "B H Q:{words} d_head"),
    "keys": ("key", N_("keys"), "B H K:{words} d_head"),
    "values": ("value", N_("values"), "B H K:{words} d_head"),
    "scores": ("scores", N_("scores"), "B H Q:{words} K:{words}"),
    "masked": ("masked_scores", N_("masked scores"), "B H Q:{words} K:{words}"),
    "weights": ("weights", N_("attention weights"), "B H Q:{words} K:{words}"),
    "heads": ("heads", N_("output of each head"), "B H Q:{words} d_head"),
    "merged": ("merged", N_("heads side by side"), "B {tokens} {queries}"),
    "output": ("output", N_("the attention's output"), "B {tokens} d_model"),
}
"""A name in the code of a step -> what a self-attention records under it, its label, its axes."""


@lru_cache(maxsize=1024)
def names_in(code: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that code reads before it makes them, and those that it makes, in order."""
    read: dict[str, None] = {}
    made: dict[str, None] = {}
    blocks: list[CodeType] = [compile(code, "<step>", "exec")]
    for block in blocks:
        blocks += [inner for inner in block.co_consts if isinstance(inner, CodeType)]
        for one in dis.get_instructions(block):
            if one.opname == "STORE_NAME":
                made[one.argval] = None
            elif one.opname in ("LOAD_NAME", "LOAD_GLOBAL") and one.argval not in made:
                read[one.argval] = None
    return tuple(read), tuple(made)


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
    def relative(self) -> Position | None:
        """The positions that act in the block's self-attention."""
        relative = self.attention.relative
        return POSITIONS[relative] if relative else None

    def attended(self, name: str) -> StepTensor:
        """Return what the block's self-attention records under a name of a step's code."""
        words = self.axis.partition(":")[2]
        if name == "mask":
            return mask_seen(self.got("self_attention.mask"), words)
        recorded, label, axes = _OF_ATTENTION[name]
        queries = self.d_q[0]
        keys = "d_kv" if self.attention.n_kv_heads else queries
        axes = axes.format(tokens=self.axis, words=words, queries=queries, keys=keys)
        return seen(name, label, self.got(f"self_attention.{recorded}"), axes)

    def step(
        self,
        name: str,
        title: str,
        topics: Sequence[str],
        code: str,
        question: Question,
        *tensors: StepTensor,
        names: Mapping[str, object] | None = None,
        shown: str = "",
        is_inside: bool = False,
    ) -> WalkStep:
        """Return a step. What goes in and what comes out is read from its code.

        tensors: what the code reads and makes, and what is worth a look besides. is_inside: the
        step opens the block, and its self-attention's tensors need not be given. names: modules
        and values that the code reads, without the usual ones and the sizes of the block.
        """
        read, made = names_in(code)
        known = {one.name: one for one in tensors}
        extra = [one for one in tensors if one.name not in {*read, *made}]
        if is_inside:
            usual = [each for each in (*read, *made) if each == "mask" or each in _OF_ATTENTION]
            known = {each: self.attended(each) for each in usual if each not in known} | known
        given = dict(names or {})
        wanted = set(read) - set(known) - set(given)
        if wanted & {"B", "Q", "H", "d_head", "d_model", "d_q", self.axis.partition(":")[0]}:
            given |= {each: size for each, size in self._sizes().items() if each in wanted}
        return WalkStep(
            name,
            title,
            tuple(topics),
            code,
            tuple(known[each] for each in read if each in known),
            tuple(known[each] for each in made if each in known),
            question,
            block=self.path if is_inside else "",
            extra=tuple(extra),
            names=given | {each: one for each, one in _MODULES.items() if each in wanted},
            shown=shown,
        )

    def _sizes(self) -> dict[str, int]:
        """Return the sizes of the block by the names that they have in the code of a step."""
        batch, length, n_heads, d_head, d_model = self.sizes
        sizes = {"B": batch, "Q": length, self.axis.partition(":")[0]: length, "H": n_heads}
        return sizes | {"d_head": d_head, "d_model": d_model, "d_q": self.d_q[1]}

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
