"""Learning to classify pictures, which are moved a little each time they are read."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tfm_core.choices.config import ImageTaskConfig
from tfm_core.data.image_data import ImageData, ImageSplit, draw_moves, moved
from tfm_core.data.moving import take_rows
from tfm_core.training.losses import cross_entropy
from tfm_core.training.objectives import Batch, Objective, StepMetrics, measure_tokens


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
