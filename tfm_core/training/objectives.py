"""What is learned: batches from data that lies on the device, the loss, and its measurement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.config import TEXT_TASKS, ImageTaskConfig
from tfm_core.data.augment import augment
from tfm_core.data.image_data import ImageData, ImageSplit
from tfm_core.data.text_data import TextData, TextSplit
from tfm_core.data.vocabulary import PAD, SPECIALS

MEASURE_BATCH = 500


@dataclass(frozen=True, slots=True)
class Scores:
    """Sums over one batch, still on the device.

    loss: mean cross-entropy, to be differentiated; right and counted: tokens or pictures;
    whole: whole targets right, None for pictures; examples: how many targets. shown: the loss to
    report, where it is not the one to differentiate.
    """

    loss: Tensor
    right: Tensor
    counted: Tensor | int
    whole: Tensor | None
    examples: int
    shown: Tensor | None = None


class Objective(Protocol):
    """One task as the loop sees it."""

    n_train: int
    n_classes: int

    def scores(self, model: nn.Module, indices: Tensor, generator: torch.Generator) -> Scores:
        """Return loss and counts of the training examples ``indices`` (B,), on the CPU."""
        ...

    def floor(self) -> float | None:
        """Return the lowest loss that the targets allow, None where unknown."""
        ...

    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """Return loss, accuracy and whole-sequence accuracy on "validation" or "test"."""
        ...


class TextObjective:
    """Next-token prediction of the target given the source."""

    def __init__(self, data: TextData, *, label_smoothing: float = 0.0) -> None:
        """Take data that lies on the device."""
        self.data, self.label_smoothing = data, label_smoothing
        self.n_train = len(data.train.src)
        is_label = TEXT_TASKS[data.task.name].answer == "label"
        self.first_class = len(SPECIALS) if is_label else 0  # a label is never a special token
        self.n_classes = len(data.task.tgt_vocabulary) - self.first_class
        self._lengths = {  # on the CPU, so that cutting a batch needs no wait for the device
            name: ((split.src != PAD).sum(1).cpu(), (split.tgt != PAD).sum(1).cpu())
            for name, split in self._splits().items()
        }

    def _splits(self) -> dict[str, TextSplit]:
        data = self.data
        return {"train": data.train, "validation": data.validation, "test": data.test}

    def _batch(self, name: str, indices: Tensor) -> tuple[Tensor, Tensor]:
        split, (src_lengths, tgt_lengths) = self._splits()[name], self._lengths[name]
        src_len, tgt_len = int(src_lengths[indices].max()), int(tgt_lengths[indices].max())
        places = indices.to(split.src.device)
        return split.src[places, :src_len], split.tgt[places, :tgt_len]

    def _scores(self, model: nn.Module, src: Tensor, tgt: Tensor, smoothing: float) -> Scores:
        logits, wanted = model(src, tgt[:, :-1]), tgt[:, 1:]
        return token_scores(logits, wanted, smoothing, first_class=self.first_class)

    def scores(self, model: nn.Module, indices: Tensor, generator: torch.Generator) -> Scores:
        """See Objective; nothing is drawn at random."""
        return self._scores(model, *self._batch("train", indices), self.label_smoothing)

    def floor(self) -> float | None:
        """Targets are functions of their sources, so only label smoothing keeps the loss up."""
        return smoothed_floor(self.label_smoothing, self.n_classes)

    @torch.no_grad()
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """See Objective; the loss is without label smoothing."""
        total = len(self._splits()[split].src)
        return measured_tokens(
            total, lambda rows: self._scores(model, *self._batch(split, rows), 0.0)
        )


def token_scores(
    logits: Tensor, wanted: Tensor, smoothing: float, *, first_class: int = 0
) -> Scores:
    """Score predictions (B, T, vocabulary) of the tokens (B, T); padding does not count.

    first_class: the tokens before it are never answers, and are left out of the loss.
    """
    loss = F.cross_entropy(
        logits[..., first_class:].flatten(0, 1).float(),
        wanted.flatten() - first_class,
        ignore_index=PAD - first_class,
        label_smoothing=smoothing,
    )
    real = wanted != PAD
    right = (logits.detach().argmax(-1) == wanted) & real
    whole = (right == real).all(1).sum()
    return Scores(loss, right.sum(), real.sum(), whole, len(wanted))


def smoothed_floor(smoothing: float, n_classes: int) -> float:
    """Return the lowest loss of smoothed targets.

    The best prediction of a smoothed target is that target, and its loss the entropy.
    """
    share = smoothing / n_classes
    top = 1.0 - smoothing + share
    if not share:
        return 0.0
    return -top * math.log(top) - (n_classes - 1) * share * math.log(share)


def measured_tokens(
    total: int, scored: Callable[[Tensor], Scores], batch: int = MEASURE_BATCH
) -> tuple[float, float, float | None]:
    """Return loss, accuracy and whole-sequence accuracy over ``total`` examples, in batches."""
    loss = right = counted = whole = 0.0
    for first in range(0, total, batch):
        scores = scored(torch.arange(first, min(total, first + batch)))
        tokens = float(scores.counted)
        loss += float(scores.loss) * tokens
        right, counted = right + float(scores.right), counted + tokens
        assert scores.whole is not None
        whole += float(scores.whole)
    return loss / counted, right / counted, whole / total


class ImageObjective:
    """Classification of pictures."""

    def __init__(
        self, data: ImageData, config: ImageTaskConfig, *, label_smoothing: float = 0.0
    ) -> None:
        """Take data that lies on the device."""
        self.data, self.config, self.label_smoothing = data, config, label_smoothing
        self.n_train = len(data.train.labels)
        self.n_classes = data.facts.n_classes

    def scores(self, model: nn.Module, indices: Tensor, generator: torch.Generator) -> Scores:
        """See Objective; ``generator`` draws the augmentation."""
        train = self.data.train
        places = indices.to(train.labels.device)
        images = self.data.normalise(train.images.index_select(0, places))
        config = self.config
        images = augment(
            images,
            shift=config.shift,
            rotation=config.rotation,
            scale=config.scale,
            generator=generator,
        )
        return self._scores(model, images, train.labels[places], self.label_smoothing)

    def _scores(self, model: nn.Module, images: Tensor, labels: Tensor, smoothing: float) -> Scores:
        logits = model(images)  # (B, classes)
        loss = F.cross_entropy(logits.float(), labels, label_smoothing=smoothing)
        right = (logits.detach().argmax(-1) == labels).sum()
        return Scores(loss, right, len(labels), None, len(labels))

    def floor(self) -> float | None:
        """Nobody knows how ambiguous pictures are."""
        return None

    @torch.no_grad()
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """See Objective; the loss is without label smoothing."""
        part: ImageSplit = self.data.validation if split == "validation" else self.data.test
        loss = right = 0.0
        for images, labels in _chunks(part):
            scores = self._scores(model, self.data.normalise(images), labels, 0.0)
            loss += float(scores.loss) * len(labels)
            right += float(scores.right)
        total = len(part.labels)
        return loss / total, right / total, None


def _chunks(part: ImageSplit) -> Iterator[tuple[Tensor, Tensor]]:
    for first in range(0, len(part.labels), MEASURE_BATCH):
        rows = slice(first, first + MEASURE_BATCH)
        yield part.images[rows], part.labels[rows]
