"""The record of a mistake that people make in the code of a Transformer.

Nothing here imports torch: a page reads every word of every mistake before a model is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfm_core.variants.record import Variant

if TYPE_CHECKING:
    from torch import nn

    from tfm_core.layers.attention import MultiHeadAttention
    from tfm_core.layers.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake(Variant):
    """What is wrong, how to do it to a model, and how to find it.

    settings: those that ask for it, ``section.field`` -> value. apply: makes the mistake in a
    healthy model, or in a part of one, in place; a second time it changes nothing; None where it is
    made in training. changes_attention_weights: whether an attention has other weights with it.
    means: what was done, and what follows from it. probe: the measurement that finds it, by its
    name in ``tfm_core.inspect.bugs``.
    """

    settings: Mapping[str, Any]
    apply: Callable[[nn.Module], None] | None
    changes_attention_weights: bool
    means: str
    probe: str

    def is_asked_for(self, section: str, settings: object) -> bool:
        """Return whether the settings of a section, such as "model", ask for this mistake."""
        fields = [path.split(".") for path in self.settings]
        return all(
            where == section and getattr(settings, field, None) == self.settings[f"{where}.{field}"]
            for where, field in fields
        )


def attentions(model: nn.Module) -> Iterator[MultiHeadAttention]:
    """Yield every multi-head attention of a model, or of a part of one."""
    from tfm_core.layers.attention import MultiHeadAttention

    return (part for part in model.modules() if isinstance(part, MultiHeadAttention))


def blocks(model: nn.Module) -> Iterator[Block]:
    """Yield every Transformer block of a model, or of a part of one."""
    from tfm_core.layers.blocks import Block

    return (part for part in model.modules() if isinstance(part, Block))
