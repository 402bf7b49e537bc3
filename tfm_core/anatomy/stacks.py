"""Which stacks of blocks a family has: what can be said of a model without its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfm_core.config import ModelConfig

StackName = Literal["encoder", "decoder"]

_STACKS: dict[str, tuple[StackName, ...]] = {
    "encoder-decoder": ("encoder", "decoder"),
    "captioner": ("encoder", "decoder"),
    "encoder-only": ("encoder",),
    "vit": ("encoder",),
    "decoder-only": ("decoder",),
    "recurrent": (),
}


@dataclass(frozen=True, slots=True)
class StackPlan:
    """A stack of equal blocks. has_cross: each block attends to another stack's output, too."""

    name: StackName
    n_layers: int
    has_cross: bool = False

    @property
    def attentions(self) -> tuple[str, ...]:
        """The attentions of a block, by their names in it."""
        return ("self_attention", "cross_attention") if self.has_cross else ("self_attention",)

    def paths(self, attention: str) -> list[str]:
        """Return the path of one attention in each block."""
        return [f"{self.name}.layers.{layer}.{attention}" for layer in range(self.n_layers)]


def stacks(config: ModelConfig) -> tuple[StackPlan, ...]:
    """Return the stacks of a Transformer in the order of the forward pass; a recurrent model has
    none.
    """
    names = _STACKS[config.family]
    if len(names) == 1:
        return (StackPlan(names[0], getattr(config, "n_layers")),)  # noqa: B009
    return tuple(
        StackPlan(name, getattr(config, f"n_{name}_layers"), has_cross=name == "decoder")
        for name in names
    )


def attention_paths(config: ModelConfig) -> dict[tuple[str, str], list[str]]:
    """Return the attention modules: stack and attention -> one path a layer."""
    found: dict[tuple[str, str], list[str]] = {
        (stack.name, attention): stack.paths(attention)
        for stack in stacks(config)
        for attention in stack.attentions
    }
    return found or {("decoder", "cross_attention"): ["decoder.cross_attention"]}
