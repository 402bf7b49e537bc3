"""Learning to classify pictures, and to describe them: the next word of a caption.

Training pictures are moved a little, and captioned scenes composed anew, each time they are read.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tfm_core.choices.config import CaptionTaskConfig, ImageTaskConfig
from tfm_core.data.captions import CaptionData, CaptionSplit, SceneChanges
from tfm_core.data.image_data import ImageData, ImageSplit, draw_moves, moved
from tfm_core.data.moving import take_rows
from tfm_core.training.losses import cross_entropy, labels_of
from tfm_core.training.objectives import (
    Batch,
    Objective,
    StepMetrics,
    measure_tokens,
    token_metrics,
)

_CAPTIONS_AT_ONCE = 125  # more pictures do not fit a processor's cache


class ImageObjective(Objective):
    """Classification of pictures."""

    data: ImageData
    config: ImageTaskConfig

    def prepare(self) -> None:
        """See Objective."""
        self.n_train = len(self.data.train.labels)
        self.n_classes = self.data.facts.n_classes

    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """See Objective; ``generator`` draws the augmentation."""
        moves = draw_moves(len(indices), generator=generator, **self._most)
        return Batch(indices, (), (indices, moves))

    @property
    def _most(self) -> dict[str, float]:
        config = self.config
        return {"shift": config.shift, "rotation": config.rotation, "scale": config.scale}

    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """See Objective."""
        train, (rows, moves) = self.data.train, batch.tensors
        images = self.data.normalise(take_rows(train.images, rows, batch.indices))
        images = moved(images, moves, **self._most)
        labels = take_rows(train.labels, rows, batch.indices)
        return self._metrics(model, images, labels, self.label_smoothing)

    def _metrics(
        self, model: nn.Module, images: Tensor, labels: Tensor, smoothing: float
    ) -> StepMetrics:
        logits = model(images)  # (B, classes)
        loss = cross_entropy(logits, labels, mistakes=self.mistakes, smoothing=smoothing)
        n_correct = (logits.detach().argmax(-1) == labels).sum()
        return StepMetrics(loss, n_correct, len(labels), None, len(labels))

    @torch.no_grad()
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """See Objective; the loss is without label smoothing."""
        part: ImageSplit = self.data.validation if split == "validation" else self.data.test

        def metrics_of(rows: slice) -> StepMetrics:
            images = self.data.normalise(part.images[rows])
            return self._metrics(model, images, part.labels[rows], 0.0)

        return measure_tokens(len(part.labels), metrics_of)


class CaptionObjective(Objective):
    """Next-word prediction; training pictures are composed anew, with digits a little changed."""

    data: CaptionData
    config: CaptionTaskConfig

    def prepare(self) -> None:
        """See Objective."""
        self.n_train = len(self.data.train)
        self.n_classes = len(self.data.vocabulary)

    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """See Objective; ``generator`` draws how each digit is changed."""
        size = (5, len(indices), self.data.train.chosen.size(1))
        changes = torch.rand(size, generator=generator) * 2 - 1
        return Batch(indices, (), (indices, changes))

    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """See Objective."""
        rows, sampled = batch.tensors
        changes = self._changes(sampled)
        return self._metrics(model, self.data.train, rows, self.label_smoothing, changes)

    def _changes(self, sampled: Tensor) -> SceneChanges:
        """Return how digits are changed, given (5, B, n) from -1 to 1."""
        config = self.config
        turn, grow, lean, right, down = sampled
        return SceneChanges(
            angle=turn * config.rotation,
            zoom=1 + grow * config.scale,
            slant=lean * config.slant,
            right=right * config.shift,
            down=down * config.shift,
        )

    def _metrics(
        self,
        model: nn.Module,
        split: CaptionSplit,
        rows: Tensor | slice,
        smoothing: float,
        changes: SceneChanges | None = None,
    ) -> StepMetrics:
        images = self.data.normalise(split.pictures(rows, changes))
        tgt = split.tgt[rows]
        logits = model(images, tgt[:, :-1])
        return token_metrics(
            logits, labels_of(tgt, self.mistakes), smoothing, mistakes=self.mistakes
        )

    @torch.no_grad()
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """See Objective; the pictures are the same every time, and the loss is not smoothed."""
        part = self.data.validation if split == "validation" else self.data.test
        return measure_tokens(
            len(part), lambda rows: self._metrics(model, part, rows, 0.0), _CAPTIONS_AT_ONCE
        )
