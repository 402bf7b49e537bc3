"""Which stacks of blocks and which attentions a family has, without its data.

What a model of a task with its vocabularies is made of, ``anatomy`` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from tfm_core.choices.config import ForeignModelConfig, ModelConfig

StackName = Literal["encoder", "decoder"]
Tokens = Literal["source", "answering", "target", "sequence", "patches", "given", "past"]
"""What a stack reads: a source; a source that is answered where it stands; what is written; source
and target as one sequence; a picture; of somebody else's stack, what it sees whole, and what it
sees up to each token.
"""


@dataclass(frozen=True, slots=True)
class StackPlan:
    """A stack of equal blocks.

    memory: what the stack before it reads, to whose output each block attends too; "" for none.
    position: the setting that names its positions.
    """

    name: StackName
    tokens: Tokens
    memory: Tokens | Literal[""] = ""
    position: str = "position"
    n_layers: int = 0

    @property
    def attentions(self) -> tuple[AttentionPlan, ...]:
        """The attentions of its blocks."""
        layers = tuple(f"{self.name}.layers.{layer}." for layer in range(self.n_layers))
        own = AttentionPlan(self.name, "self_attention", self.tokens, self.tokens, layers)
        if not self.memory:
            return (own,)
        return own, AttentionPlan(self.name, "cross_attention", self.tokens, self.memory, layers)


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """One attention of every block of a stack. queries, keys: of which tokens they are."""

    stack: StackName
    name: str
    queries: Tokens
    keys: Tokens
    blocks: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """Its module in each block."""
        return [f"{block}{self.name}" for block in self.blocks]

    @property
    def is_cross(self) -> bool:
        """Whether queries and keys are of different tokens."""
        return self.queries != self.keys

    @property
    def has_order(self) -> bool:
        """Whether what is written is among the keys, so that a mask must hide what follows."""
        return self.keys in ("target", "sequence")

    @property
    def has_padding(self) -> bool:
        """Whether some keys can be padding; all pictures of a task have as many patches."""
        return self.keys != "patches"


STACKS: dict[str, tuple[StackPlan, ...]] = {
    "encoder-decoder": (
        StackPlan("encoder", "source"),
        StackPlan("decoder", "target", memory="source"),
    ),
    "captioner": (
        StackPlan("encoder", "patches"),
        StackPlan("decoder", "target", memory="patches", position="text_position"),
    ),
    "encoder-only": (StackPlan("encoder", "answering"),),
    "vit": (StackPlan("encoder", "patches"),),
    "decoder-only": (StackPlan("decoder", "sequence"),),
    "recurrent": (),
}
"""The stacks of each family, in the order of the forward pass."""
_RECURRENT = AttentionPlan("decoder", "cross_attention", "target", "source", ("decoder.",))


def stacks(config: ModelConfig) -> tuple[StackPlan, ...]:
    """Return the stacks of a Transformer in the order of the forward pass; a recurrent model has
    none.
    """
    plans = STACKS[config.family]
    depths = ["n_layers"] if len(plans) == 1 else [f"n_{plan.name}_layers" for plan in plans]
    return tuple(
        replace(plan, n_layers=getattr(config, depth))
        for plan, depth in zip(plans, depths, strict=True)
    )


@lru_cache(maxsize=128)
def attentions(config: ModelConfig) -> tuple[AttentionPlan, ...]:
    """Return the attentions of a model in the order of the forward pass."""
    if isinstance(config, ForeignModelConfig):
        return tuple(_of_foreign(config))
    plans = tuple(plan for stack in stacks(config) for plan in stack.attentions)
    return plans or (_RECURRENT,)


def _of_foreign(config: ForeignModelConfig) -> Iterator[AttentionPlan]:
    layers = {
        stack: tuple(f"{stack}.layers.{layer}." for layer in range(len(config.modules)))
        for stack in ("encoder", "decoder")
    }
    given: Tokens = "source" if config.cross else "given"
    past: Tokens = "target" if config.cross else "past"
    if n := len(config.both):
        yield AttentionPlan("encoder", "self_attention", given, given, layers["encoder"][:n])
    if n := len(config.past):
        yield AttentionPlan("decoder", "self_attention", past, past, layers["decoder"][:n])
    if n := len(config.cross):
        yield AttentionPlan("decoder", "cross_attention", past, given, layers["decoder"][:n])
