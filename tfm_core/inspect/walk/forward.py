"""What a walk is about: a model, a few examples, and everything its forward pass recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from tfm_core.anatomy import Anatomy, anatomy
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.choices.variants.forms import CAUSAL, CAUSALITIES, Causality
from tfm_core.models.build import Model
from tfm_core.probe.capture import ActivationCache, capture
from tfm_core.sentences import joined

Item = Mapping[str, Any]
"""An example as a probe holds it."""


@dataclass(frozen=True, slots=True, eq=False)
class CaptionResult:
    """The pictures of a walk in words, one entry an example.

    written: ids (B, T) that the model wrote by itself, up to <eos>, then padding. said, truth: the
    caption as it wrote it, and the true one. boxes: for each word of the true caption the box of
    the digit that it names, left, top, right and bottom in pixels, or None.
    """

    written: Tensor
    said: Sequence[str]
    truth: Sequence[str]
    boxes: Sequence[Sequence[Sequence[int] | None]]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model that was run once on a batch.

    inputs: source ids (B, S) and shifted target ids (B, T), or pictures (B, C, Y, X), with
    target ids where they are described.
    cache: what was recorded; without values for a model on the meta device.
    words: name of a token list -> one list an example (``src``, ``tgt``, ``sequence``,
    ``patches``), or one for all (``vocabulary``, ``classes``, under the index 0).
    truth: what the model should answer, an example: target tokens with <eos>, or a class name.
    statistics: mean and deviation (C,) that the pictures were normalised with.
    described: what was written of the pictures, by a model with values that describes them.
    has_own_statistics: the pictures were normalised with their own mean and deviation.
    numbers: of a model that is laid out by its shapes, the same with values, run on one example.
    """

    config: ModelConfig
    model: Model
    shape: Shape
    inputs: tuple[Tensor, ...]
    cache: ActivationCache
    words: Mapping[str, Sequence[Sequence[str]]]
    truth: Sequence[Sequence[str]]
    pictures: npt.NDArray[np.uint8] | None = None
    statistics: tuple[Tensor, Tensor] | None = None
    has_own_statistics: bool = False
    note: str = ""
    described: CaptionResult | None = None
    numbers: Subject | None = None

    @property
    def anatomy(self) -> Anatomy:
        """The parts of the model."""
        return anatomy(self.config, self.shape)

    @property
    def reader(self) -> str:
        """The kind of model for the walk: its family, or its task where that is more specific."""
        shape = self.shape
        if isinstance(shape, TextShape):
            if shape.is_label:
                return "label"
            if shape.head == "pooler":
                return "pooler"
            if shape.mask_id:
                return "blanks"
            if not shape.has_source:
                return "language"
        return self.config.family

    @property
    def source(self) -> Tensor | None:
        """The source ids (B, S); a language model and a model of pictures have none."""
        first = self.inputs[0]
        return first if isinstance(self.shape, TextShape) and first.size(1) else None

    @property
    def memory_axis(self) -> str:
        """The axis that a decoder looks back at, as ``"S:src"``; "" where nothing looks back."""
        if not any(len(part.inputs) > 1 for part in self.anatomy.of_kind("stack")):
            return ""
        return "N:tokens" if self.anatomy.of_kind("stem") else "S:src"

    @property
    def order(self) -> Causality:
        """Which way a decoder's tokens look; the causal way where nothing is written."""
        written = (part.order for part in self.anatomy.attentions if part.order)
        return CAUSALITIES[next(written, CAUSAL.name)]

    @property
    def n_words(self) -> int:
        """The tokens that can be answered; none of a model that answers a class."""
        return int(getattr(self.shape, "tgt_vocabulary", 0))

    @property
    def looked_at(self) -> Subject:
        """The subject whose numbers are shown."""
        return self if self.numbers is None else self.numbers

    @property
    def is_real(self) -> bool:
        """Whether there are values to look at."""
        return not self.inputs[0].is_meta

    @property
    def n_examples(self) -> int:
        """Number of examples in the batch."""
        return self.inputs[0].size(0)

    def tokens(self, name: str, example: int) -> Sequence[str] | None:
        """Return the tokens that stand along an axis, or None where they have no names."""
        lists = self.words.get(name)
        return None if not lists else lists[example if len(lists) > 1 else 0]


def recorded(model: Model, inputs: tuple[Tensor, ...]) -> ActivationCache:
    """Run a model once; return everything that it records."""
    with capture(model) as cache:
        model(*inputs)
    return cache


def on_device(model: Model, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors on the model's device."""
    device = next(model.parameters()).device
    return tuple(tensor.to(device) for tensor in inputs)


def with_note(subject: Subject, note: str) -> Subject:
    """Return the subject with a sentence on where it comes from."""
    return dataclasses.replace(subject, note=joined(*filter(None, (note, subject.note))))
