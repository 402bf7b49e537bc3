"""The record of a mistake that people make in the code of a Transformer.

Nothing here imports torch: a page reads every word of every mistake before a model is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tfm_core.variants.record import Named, Variant

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tfm_core.layers.attention import MultiHeadAttention
    from tfm_core.layers.blocks import Block

Place = Literal["block", "decoder", "training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake(Variant):
    """All about one mistake: its words, how to make it, what it changes, and how to find it.

    place: where a configuration can ask for it: in the blocks of any Transformer, in a decoder that
    writes, or in training; None for one that only lessons show, because a run of it crashes or
    because nothing but the model itself has a form for it. short: the
    name of a run that makes it. means: what was done, and its effect. probe: the measurement that
    finds it, by its name in ``tfm_core.inspect.bugs``; None where no probe does. right, wrong: the
    line of code as it should be, and as it is written by mistake.

    apply: makes it in a healthy model, or in a part of one, in place; a second time it changes
    nothing. form: what equations, diagrams, walks and generated code read in place of the healthy
    form, such as a ``Residual``. changes_attention_weights: whether an attention has other weights
    with it. refusal: a sentence where the settings of a model leave no place for it.

    loss_input: in training, what the loss gets in place of logits (N, classes): from 0 to 1.
    loss_code: the same, as an expression in a generated file. labels: of ids (B, T + 1), the tokens
    (B, T) that are to be predicted from the first T. labels_code: the same of ``tgt``, as code.
    """

    place: Place | None
    short: str
    means: str
    probe: str | None
    right: str | None = None
    wrong: str | None = None
    apply: Callable[[nn.Module], None] | None = None
    form: Named | None = None
    changes_attention_weights: bool = False
    refusal: Callable[[Any], str | None] | None = None
    loss_input: Callable[[Tensor], Tensor] | None = None
    loss_code: str | None = None
    labels: Callable[[Tensor], Tensor] | None = None
    labels_code: str | None = None

    @property
    def settings(self) -> Mapping[str, tuple[str, ...]]:
        """What a configuration changes to make it: ``section.field`` -> value."""
        section = "training" if self.place == "training" else "model"
        return {f"{section}.mistakes": (self.name,)}

    def excludes(self, other: Mistake) -> bool:
        """Return whether the two cannot be made together: each gives the same part another form."""
        have_forms = self.form is not None and type(self.form) is type(other.form)
        return have_forms or None not in (self.loss_input, other.loss_input)


def attentions(model: nn.Module) -> Iterator[MultiHeadAttention]:
    """Yield every multi-head attention of a model, or of a part of one."""
    from tfm_core.layers.attention import MultiHeadAttention

    return (part for part in model.modules() if isinstance(part, MultiHeadAttention))


def blocks(model: nn.Module) -> Iterator[Block]:
    """Yield every Transformer block of a model, or of a part of one."""
    from tfm_core.layers.blocks import Block

    return (part for part in model.modules() if isinstance(part, Block))
