"""The record of a mistake that people make in the code of a Transformer; torch-free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tfm_core.variants.record import Named, Variant

if TYPE_CHECKING:
    from torch import Tensor

MistakePlace = Literal["block", "decoder", "training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake(Variant):
    """One mistake: its words, how to make it, what it changes, and how to find it.

    place: where a configuration can ask for it: the blocks of any Transformer, a decoder, or
    training; None for one that only lessons show. short: the name of a run with it. probe: the
    measurement of ``tfm_core.inspect.bugs`` that finds it, if any. right, wrong: the correct and
    the mistaken line of code.

    apply: the name of what makes it in a healthy model, or in a part of one, in place; idempotent.
    form: replaces the healthy form, such as a ``Residual``, in equations, diagrams, walks and
    generated code. changes_attention_weights: whether attention has other weights. refusal: why the
    settings of a model leave no place for it, or None.

    loss_input: what the loss gets in place of logits (N, classes), from 0 to 1; loss_code: the same
    as code. labels: the targets (B, T) from ids (B, T + 1); labels_code: the same as code.
    """

    place: MistakePlace | None
    short: str
    probe: str | None
    right: str | None = None
    wrong: str | None = None
    apply: str | None = None
    form: Named | None = None
    changes_attention_weights: bool = False
    refusal: Callable[[Any], str | None] | None = None
    loss_input: Callable[[Tensor], Tensor] | None = None
    loss_code: str | None = None
    labels: Callable[[Tensor], Tensor] | None = None
    labels_code: str | None = None

    @property
    def settings(self) -> Mapping[str, tuple[str, ...]]:
        """Return the settings that make it: ``section.field`` -> value."""
        section = "training" if self.place == "training" else "model"
        return {f"{section}.mistakes": (self.name,)}

    def excludes(self, other: Mistake) -> bool:
        """Return whether the two cannot be made together: each gives the same part another form."""
        have_forms = self.form is not None and type(self.form) is type(other.form)
        return have_forms or None not in (self.loss_input, other.loss_input)
